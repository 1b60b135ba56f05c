/** The body of `POST /v1/responses`, and what it asks of a conversation. Unknown fields are ignored. */
import { z } from 'zod'
import type { Access } from '../../access/access.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import type { RunSampling, ToolChoice } from '../../contract/values/llm-config.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { OutputSchema, RunOptions } from '../../contract/run.ts'
import { mayNotInstruct } from '../shared/create-request.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { imageOf, textParts } from '../shared/input-parts.ts'
import { parseTools } from '../shared/use-tools.ts'

/** The label of the tools of the server: a client that declares it answers approval requests. */
export const SERVER_LABEL = 'agent-server'

/** Parts of a message, as many as in the API. */
export const MAX_PARTS = 1000

const Part = z.looseObject({ type: z.string() })
const Parts = z.array(Part).max(MAX_PARTS)
const Item = z.looseObject({ type: z.string().optional() })
const ImageUrl = z.object({ url: z.string() })
export const Metadata = z.record(z.string(), z.unknown()).nullish()

export const ResponseRequest = z.looseObject({
  model: z.string().min(1).max(200),
  input: z.union([z.string(), z.array(Item).max(1000)]).optional(),
  instructions: z.string().nullish(),
  temperature: RunOptions.shape.temperature.nullable(),
  max_output_tokens: RunOptions.shape.max_output_tokens.nullable(),
  reasoning: z.looseObject({ effort: RunOptions.shape.reasoning_effort.nullable() }).nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([z.string(), z.looseObject({ id: z.string() })]).nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.unknown().optional(),
  prompt: z.unknown().optional(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  metadata: Metadata,
})
export type ResponseRequest = z.infer<typeof ResponseRequest>

/** Throws a `Problem` that names the field. */
export function parseResponseRequest(body: unknown): ResponseRequest {
  const request = parseField(ResponseRequest, body)
  const { tool_choice: choice, prompt } = request
  if ((choice ?? undefined) !== undefined && !isToolChoice(choice))
    throw invalid('tool_choice', 'is not supported; send auto, required or none')
  if ((prompt ?? undefined) !== undefined) throw invalid('prompt', 'is not supported; send input and instructions')
  return request
}

export const isToolChoice = (choice: unknown): choice is ToolChoice =>
  choice === 'auto' || choice === 'required' || choice === 'none'

/** Undefined: that of the profile. */
export const toolChoiceOf = ({ tool_choice: choice }: { readonly tool_choice?: unknown }): ToolChoice | undefined =>
  isToolChoice(choice) && choice !== 'auto' ? choice : undefined

/** The options of one run. Throws a `Problem`. */
export function runOptionsOf(access: Access, request: ResponseRequest): RunOptions {
  const { temperature, max_output_tokens, reasoning, instructions } = request
  const reasoning_effort = reasoning?.effort
  return runOptionsWith(access, { temperature, max_output_tokens, reasoning_effort }, instructions, 'instructions')
}

/** A key that `mayNotInstruct` says them in its first message. `field`: where the instructions are in the request. */
export function runOptionsWith(
  access: Access,
  sampling: Readonly<Record<keyof RunSampling, unknown>>,
  instructions: string | null | undefined,
  field: string,
): RunOptions {
  const givenFields = Object.entries(sampling).filter(([, value]) => value !== undefined && value !== null)
  const options = parseField(RunOptions, Object.fromEntries(givenFields))
  if (!instructions || !/\S/.test(instructions) || mayNotInstruct(access)) return options
  return { ...options, instructions: parseField(InstructionsOfRun, instructions, field) }
}

const InstructionsOfRun = RunOptions.shape.instructions.unwrap()

export type ApprovalAnswer = { readonly id: string; readonly approve: boolean; readonly reason: string | undefined }
export type CallOutput = { readonly callId: string; readonly output: string | readonly UserPart[] }
export type ResponseInput = {
  /** What the user says. */
  readonly parts: readonly UserPart[]
  readonly approvals: readonly ApprovalAnswer[]
  readonly outputs: readonly CallOutput[]
}

const ApprovalItem = z.object({ approval_request_id: z.string(), approve: z.boolean(), reason: z.string().nullish() })
const OutputItem = z.object({ call_id: z.string(), output: z.union([z.string(), Parts]) })
const MessageItem = z.looseObject({ role: z.string(), content: z.union([z.string(), Parts]) })

const OF_MODEL: ReadonlySet<string> = new Set(['function_call', 'mcp_approval_request', 'mcp_call', 'reasoning'])

/** The items after the last one of the model: a client that names no earlier response sends all that it has. */
export function sinceModel(input: ResponseRequest['input']): ResponseRequest['input'] {
  if (typeof input !== 'object') return input
  return input.slice(input.findLastIndex(({ type, role }) => role === 'assistant' || OF_MODEL.has(type ?? '')) + 1)
}

/** Answers of the model are items that a client sends back: the log has them. Throws a `Problem`. */
export function readInput(input: ResponseRequest['input'], isNew: boolean): ResponseInput {
  if (input === undefined) return { parts: [], approvals: [], outputs: [] }
  if (typeof input === 'string') return { parts: textParts(input), approvals: [], outputs: [] }
  const [parts, approvals, outputs] = [[] as UserPart[], [] as ApprovalAnswer[], [] as CallOutput[]]
  const isTranscript = isNew && input.some((item) => item['role'] === 'assistant')
  for (const item of input) {
    if (item.type === 'mcp_approval_response') {
      const { approval_request_id: id, approve, reason } = parseField(ApprovalItem, item)
      approvals.push({ id, approve, reason: reason ?? undefined })
    } else if (item.type === 'function_call_output') {
      const { call_id: callId, output } = parseField(OutputItem, item)
      outputs.push({ callId, output: typeof output === 'string' ? output : partsOfContent(output) })
    } else if (item.type === 'message' || (item.type === undefined && item['role'] !== undefined)) {
      parts.push(...saidBy(parseField(MessageItem, item), isTranscript))
    } else if (item.type === 'item_reference' || item.type === undefined) {
      throw invalid('input', 'has an item that is not supported; send messages, outputs of functions and approvals')
    }
  }
  return { parts, approvals, outputs }
}

/** A new conversation gets the history that a client sends as one text, with the roles. */
function saidBy({ role, content }: z.infer<typeof MessageItem>, isTranscript: boolean): UserPart[] {
  const messageParts = typeof content === 'string' ? textParts(content) : partsOfContent(content)
  if (!isTranscript) return role === 'assistant' ? [] : messageParts
  return messageParts.map((part) => (part.type === 'text' ? { type: 'text', text: `${role}: ${part.text}` } : part))
}

function partsOfContent(content: readonly z.infer<typeof Part>[]): UserPart[] {
  return content.flatMap((part) => {
    const { type, text } = part
    if (['input_text', 'output_text', 'text'].includes(type)) return typeof text === 'string' ? textParts(text) : []
    if (type === 'input_image') return [imageOf(part['image_url'])]
    if (type === 'image_url') return [imageOf(ImageUrl.safeParse(part['image_url']).data?.url)]
    throw invalid('input', `has content of the type ${type}, which is not supported; send text and images`)
  })
}

const FunctionTool = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
})

/** The functions of the client. Hosted tools of OpenAI do not exist here: the tools of the server are those of the profile. */
export function clientToolsOf({ tools }: Pick<ResponseRequest, 'tools'>): ClientTool[] {
  const functions = (tools ?? []).filter(({ type }) => type === 'function')
  const givenTools = functions.map((tool) => {
    const { name, description, parameters } = parseField(FunctionTool, tool['function'] ?? tool, 'tools')
    return { name, description: description ?? '', input_schema: { type: 'object', ...parameters } }
  })
  return parseTools(givenTools)
}

export const asksApproval = ({ tools }: Pick<ResponseRequest, 'tools'>): boolean =>
  (tools ?? []).some((tool) => tool.type === 'mcp' && tool['server_label'] === SERVER_LABEL)

/** A new conversation goes with the answer. What a client asks for in the background it reads later. */
export const isUnstored = ({ store, background }: Pick<ResponseRequest, 'store' | 'background'>): boolean =>
  store === false && background !== true

const JsonSchema = z.looseObject({ schema: OutputSchema })

/** Undefined: the answer may have any form. */
export function outputSchemaOf({ text }: Pick<ResponseRequest, 'text'>): Record<string, unknown> | undefined {
  const format = text?.format
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'object' }
  if (format.type === 'json_schema') return parseField(JsonSchema, format).schema
  throw invalid('text.format', `has the type ${format.type.slice(0, 50)}, which is not supported; send json_schema`)
}
