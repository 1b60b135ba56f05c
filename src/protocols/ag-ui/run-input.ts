/** The body of `POST /ag-ui/{profile}`. Unknown fields are ignored. */
import { z } from 'zod'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { ImagePart } from '../../contract/values/message.ts'
import type { TextPart, UserPart } from '../../contract/values/message.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { textParts } from '../shared/input-parts.ts'
import { parseTools } from '../shared/use-tools.ts'

const MAX_MESSAGES = 10_000
const MAX_ENTRIES = 1000
const MAX_CONTEXT_CHARS = 64 * 1024

const Id = z.string().min(1).max(200)
const Part = z.looseObject({ type: z.string() })
const Source = z.looseObject({ type: z.string(), value: z.string(), mimeType: z.string().nullish() })
const Call = z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) })

const Message = z.looseObject({
  id: Id,
  role: z.string().max(50),
  content: z.unknown().optional(),
  toolCallId: z.string().nullish(),
  toolCalls: z.array(Call).nullish(),
  error: z.string().nullish(),
})
export type InputMessage = z.infer<typeof Message>

const ResumeEntry = z.looseObject({
  interruptId: z.string().max(1000),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
})
export type ResumeEntry = z.infer<typeof ResumeEntry>

export const RunInput = z.looseObject({
  threadId: Id,
  runId: Id,
  protocolVersion: z.string().nullish(),
  messages: z.array(Message).max(MAX_MESSAGES),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .nullish(),
  context: z
    .array(z.looseObject({ description: z.string(), value: z.string() }))
    .max(MAX_ENTRIES)
    .nullish(),
  resume: z.array(ResumeEntry).max(MAX_ENTRIES).nullish(),
})
export type RunInput = z.infer<typeof RunInput>

export const StopInput = z.looseObject({ threadId: Id })

/** Later minor versions are served, as the protocol says. */
export function parseRunInput(body: unknown): RunInput {
  const input = parseField(RunInput, body)
  const major = /^(\d+)\.\d+$/.exec(input.protocolVersion ?? '')?.[1]
  if (major !== undefined && Number(major) !== 1) throw invalid('protocolVersion', 'must be 1.0')
  return input
}

export function frontendToolsOf({ tools }: RunInput): ClientTool[] {
  const givenTools = (tools ?? []).map(({ name, description, parameters }) => {
    return { name, description: description ?? '', input_schema: { type: 'object', ...parameters } }
  })
  return parseTools(givenTools)
}

/** What the application says of itself, for the agent; undefined if the request does not say. */
export function contextPartOf({ context }: RunInput): TextPart | undefined {
  if (!context) return undefined
  if (context.length === 0) return { type: 'text', text: EMPTY_CONTEXT }
  const text = contextOf(context.map(({ description, value }) => `${description}: ${value}`)).toWellFormed()
  if (text.length > MAX_CONTEXT_CHARS) throw invalid('context', `has more than ${MAX_CONTEXT_CHARS} characters`)
  return { type: 'text', text }
}

const contextOf = (lines: readonly string[]): string =>
  `<application_context>\n${lines.join('\n')}\n</application_context>`

/** The application says nothing, or nothing any more. */
export const EMPTY_CONTEXT = contextOf(['(empty)'])

/** Returns what the agent can read of the content of a message. Throws a `Problem` for images that the server would have to fetch. */
export function partsIn(content: unknown): UserPart[] {
  if (typeof content === 'string') return textParts(content)
  if (content === undefined || content === null) return []
  return parseField(z.array(Part), content).flatMap((part) => {
    if (part.type === 'text') return typeof part['text'] === 'string' ? textParts(part['text']) : []
    const source = Source.safeParse(part['source']).data
    if (part.type === 'image') return source?.type === 'file' ? [unreadable(part.type)] : [imageIn(source)]
    const isText = part.type === 'document' && source?.type === 'data' && source.mimeType?.startsWith('text/') === true
    // As the protocol says: what cannot be read does not fail the run.
    return isText ? textParts(Buffer.from(source.value, 'base64').toString()) : [unreadable(part.type)]
  })
}

const unreadable = (type: string): UserPart => {
  return { type: 'text', text: `[A part of the type ${type.slice(0, 50).toWellFormed()}, which cannot be read here.]` }
}

/** Takes only data in the request itself: the server fetches no URL for a client. */
function imageIn(source: z.infer<typeof Source> | undefined): UserPart {
  const [, urlType, urlData] = /^data:([\w/+.-]+);base64,([\s\S]*)$/.exec(source?.value ?? '') ?? []
  const isInline = source?.type === 'data'
  const image = ImagePart.safeParse({
    type: 'image',
    media_type: isInline ? source.mimeType : urlType,
    data: isInline ? source.value : urlData,
  })
  if (image.success) return image.data
  throw invalid(
    'messages',
    'has an image that is not a PNG, JPEG, GIF or WebP image as base64 data; URLs are not fetched',
  )
}
