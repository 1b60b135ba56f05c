/** The body of `POST /ai/chat`, and what it asks of a conversation. Unknown fields and parts are ignored. */
import { z } from 'zod'
import { ClientTools } from '../../contract/client-tools/client-tool.ts'
import { ProfileName } from '../../contract/conversations/given-fields.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { UserInput } from '../../contract/values/message.ts'
import { invalid, parseField, refuseTwice } from '../shared/fields.ts'
import { imageOf, textParts } from '../shared/input-parts.ts'

const MAX_MESSAGES = 10_000

/** Ids have no space: see `user-message.ts`. */
const UiId = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'must have 1 to 200 visible ASCII characters')
const LoosePart = z.looseObject({ type: z.string() })
const UiMessage = z.looseObject({ id: UiId, role: z.string(), parts: z.array(LoosePart) })
export type UiMessage = z.infer<typeof UiMessage>

export const UiChatRequest = z.looseObject({
  id: UiId,
  messages: z.array(UiMessage).min(1).max(MAX_MESSAGES),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: z.string().nullish(),
  profile: ProfileName.nullish(),
  client_tools: ClientTools.nullish(),
})
export type UiChatRequest = z.infer<typeof UiChatRequest>

export type UiApproval = { readonly id: string; readonly approved: boolean; readonly reason: string | undefined }
export type UiToolOutput = { readonly toolCallId: string; readonly output: unknown; readonly isError: boolean }
export type UiQuestionAnswer = { readonly requestId: string; readonly answers: Readonly<Record<string, unknown>> }

/** What the parts of an answer say about the calls in it. */
export type UiAnswers = { readonly approvals: readonly UiApproval[]; readonly outputs: readonly UiToolOutput[] }

/** Throws a `Problem`, whose message clients get as text. */
export const parseUiChat = (body: unknown): UiChatRequest => parseField(UiChatRequest, body)

/** The answer that a request continues; undefined if it begins one. */
export function continuedAnswer({ trigger, messages, messageId }: UiChatRequest): UiMessage | undefined {
  if (trigger === 'regenerate-message') return undefined
  const message = messages.find(({ id }) => id === messageId) ?? messages.at(-1)
  return message?.role === 'assistant' ? message : undefined
}

/** Throws a `Problem` for a request without a message. */
export function lastInput({ messages }: UiChatRequest): UiMessage {
  const message = messages.findLast(({ role }) => role === 'user')
  if (message) return message
  throw invalid('messages', 'has no message of the role user')
}

const FilePart = z.looseObject({ mediaType: z.string(), url: z.string(), filename: z.string().max(500).nullish() })
const TextPart = z.looseObject({ text: z.string() })

/** What the user says; undefined in a request that only answers what waits. Throws a `Problem`. */
export function readUiInput(body: UiChatRequest): UserInput | undefined {
  if (continuedAnswer(body)) return undefined
  const message = lastInput(body)
  if (readQuestionAnswers(message).length > 0) return undefined
  const content = readInputParts(message)
  if (content.length === 0) throw invalid('messages', 'the last one has no text and no file')
  return parseField(UserInput, { role: 'user', content })
}

/** Throws a `Problem` for files that are not in the request itself. */
function readInputParts({ parts }: UiMessage): readonly UserPart[] {
  return parts.flatMap((part): UserPart[] => {
    if (part.type === 'text') return textParts(parseField(TextPart, part).text)
    return part.type === 'file' ? [fileOf(parseField(FilePart, part))] : []
  })
}

function fileOf({ mediaType, url, filename }: z.infer<typeof FilePart>): UserPart {
  if (!mediaType.startsWith('text/')) return imageOf(url)
  return { type: 'text', text: `${filename ?? 'File'}:\n${textIn(url)}`.toWellFormed() }
}

function textIn(url: string): string {
  const [, encoding, data] = /^data:[^,]*?(;base64)?,([\s\S]*)$/.exec(url) ?? []
  try {
    if (data !== undefined)
      return encoding === undefined ? decodeURIComponent(data) : Buffer.from(data, 'base64').toString()
  } catch {
    // It is refused below.
  }
  throw invalid('url', 'must be a data URL; remote URLs are not fetched')
}

const AnswerPart = z.looseObject({
  data: z.looseObject({ request_id: z.string(), answers: z.record(z.string(), z.unknown()) }),
})

/** Answers to questions are parts `data-answer` of a message of the user. Throws a `Problem` for two answers to a request. */
export function readQuestionAnswers({ parts }: UiMessage): readonly UiQuestionAnswer[] {
  const questionAnswers = parts
    .filter(({ type }) => type === 'data-answer')
    .map((part) => {
      const { request_id: requestId, answers } = parseField(AnswerPart, part).data
      return { requestId, answers }
    })
  refuseTwice(
    'request_id',
    questionAnswers.map(({ requestId }) => requestId),
  )
  return questionAnswers
}

const ApprovalPart = z.looseObject({
  approval: z.looseObject({ id: z.string(), approved: z.boolean(), reason: z.string().nullish() }),
})
const OutputPart = z.looseObject({
  toolCallId: z.string(),
  output: z.unknown(),
  errorText: z.string().nullish(),
})

/** A call that the client says nothing about is not in it. Throws a `Problem` for two answers to a call. */
export function readUiAnswers({ parts }: UiMessage): UiAnswers {
  const calls = parts.filter(({ type }) => type === 'dynamic-tool' || type.startsWith('tool-'))
  const approvals = calls
    .filter(({ state }) => state === 'approval-responded')
    .map((part): UiApproval => {
      const { id, approved, reason } = parseField(ApprovalPart, part).approval
      return { id, approved, reason: reason ?? undefined }
    })
  const outputs = calls
    .filter(({ state, preliminary, providerExecuted }) => {
      const isOver = state === 'output-error' || (state === 'output-available' && preliminary !== true)
      return isOver && providerExecuted !== true
    })
    .map((part): UiToolOutput => {
      const { toolCallId, output, errorText } = parseField(OutputPart, part)
      const isError = part['state'] === 'output-error'
      return { toolCallId, output: isError ? (errorText ?? 'The tool failed.') : (output ?? null), isError }
    })
  refuseTwice(
    'approval.id',
    approvals.map(({ id }) => id),
  )
  refuseTwice(
    'toolCallId',
    outputs.map(({ toolCallId }) => toolCallId),
  )
  return { approvals, outputs }
}
