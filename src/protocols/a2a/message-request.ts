/** The parameters of `SendMessage`. Unknown fields are ignored. */
import { z } from 'zod'
import { AnswerRequest } from '../../contract/request.ts'
import { ImagePart } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { textOf } from '../../contract/values/output-text.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { invalid, parseField, refuseTwice } from '../shared/fields.ts'
import { textParts } from '../shared/input-parts.ts'
import { A2aError } from './a2a-error.ts'
import { PushConfig } from './push-config.ts'

const MAX_PARTS = 1000

const Part = z.looseObject({
  text: z.string().nullish(),
  raw: z.string().nullish(),
  url: z.string().nullish(),
  data: z.unknown().optional(),
  mediaType: z.string().nullish(),
})
type Part = z.infer<typeof Part>

/** Proto3 sends an empty text for a field that is not set. */
const OptionalId = z
  .string()
  .max(200)
  .nullish()
  .transform((id) => (id === null || id === '' ? undefined : id))

const Message = z.looseObject({
  // With its prefix it must be a context.
  messageId: z.string().min(1).max(190),
  contextId: OptionalId,
  taskId: OptionalId,
  role: z.literal(['ROLE_USER', 1]),
  parts: z.array(Part).min(1).max(MAX_PARTS),
})

export const HistoryLength = z.coerce
  .number()
  .int()
  .nonnegative()
  .nullish()
  .transform((length) => length ?? undefined)

export const SendParams = z.looseObject({
  message: Message,
  configuration: z
    .looseObject({
      historyLength: HistoryLength,
      returnImmediately: z.boolean().nullish(),
      taskPushNotificationConfig: PushConfig.nullish(),
    })
    .nullish(),
  metadata: z.looseObject({ profile: z.string().min(1).max(200).nullish() }).nullish(),
})
export type SendParams = z.infer<typeof SendParams>

/** What a message says: words for the agent, and answers to what waits. */
export type SaidParts = { readonly content: readonly UserPart[]; readonly answers: readonly GivenAnswer[] }

/** Throws for parts that the agent cannot read. */
export function saidParts(parts: readonly Part[]): SaidParts {
  const answers = parts.flatMap(answerIn)
  refuseTwice(
    'message.parts',
    answers.map(({ requestId }) => requestId),
  )
  return { content: parts.flatMap((part) => (isAnswer(part) ? [] : contentOf(part))), answers }
}

const Answer = z.looseObject({ request_id: z.uuid() })

/** A text never says yes or no. */
const isAnswer = ({ data }: Part): boolean => typeof data === 'object' && data !== null && 'request_id' in data

function answerIn(part: Part): GivenAnswer[] {
  if (!isAnswer(part)) return []
  const { request_id: requestId, ...answer } = parseField(Answer, part.data, 'message', 'parts', 'data')
  return [{ requestId, answer: parseField(AnswerRequest, answer, 'message', 'parts', 'data') }]
}

function contentOf({ text, raw, url, data, mediaType }: Part): UserPart[] {
  if (typeof text === 'string') return textParts(text)
  if (typeof url === 'string')
    throw new A2aError('CONTENT_TYPE_NOT_SUPPORTED', 'The server fetches no URL. Send the file as raw, in base64.')
  if (typeof raw === 'string') return fileOf(raw, mediaType ?? '')
  if (data !== undefined) return textParts(textOf(data))
  throw invalid('message.parts', 'has a part without text, raw or data')
}

function fileOf(raw: string, mediaType: string): UserPart[] {
  if (/^text\/|^application\/json\b/.test(mediaType)) return textParts(Buffer.from(raw, 'base64').toString())
  const image = ImagePart.safeParse({ type: 'image', media_type: mediaType, data: raw })
  if (image.success) return [image.data]
  const message = 'The agent reads text, JSON, and images in base64: PNG, JPEG, GIF or WebP. Send one of these.'
  throw new A2aError('CONTENT_TYPE_NOT_SUPPORTED', message)
}
