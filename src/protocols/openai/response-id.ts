/**
 * The ids of responses. A response is a part of the log: its id names the conversation and where the part begins, so that it can
 * be rebuilt at any time. The only file that knows their form.
 */

export type ResponseId = {
  readonly conversationId: string
  /** Seq of its first event. */
  readonly start: number
  /** The client has declared that it answers approval requests. */
  readonly asksApproval: boolean
  readonly isBackground: boolean
  /** Its only message is JSON that fits the schema of the request. */
  readonly isStructured: boolean
  /** The request named the conversation. */
  readonly isOfConversation: boolean
}

const FORM = /^resp_([0-9a-f]{32})_([1-9]\d{0,14})(a?)(b?)(s?)(c?)$/

export function formatResponseId({
  conversationId,
  start,
  asksApproval,
  isBackground,
  isStructured,
  isOfConversation,
}: ResponseId): string {
  const marks = { a: asksApproval, b: isBackground, s: isStructured, c: isOfConversation }
  const setMarks = Object.entries(marks).flatMap(([mark, isSet]) => (isSet ? [mark] : []))
  return `resp_${plainUuid(conversationId)}_${start}${setMarks.join('')}`
}

/** Undefined for any other text. */
export function parseResponseId(text: string): ResponseId | undefined {
  const [, hex = '', start, asks, background, structuredMark, ofConversation] = FORM.exec(text) ?? []
  if (hex === '') return undefined
  return {
    conversationId: dashedUuid(hex),
    start: Number(start),
    asksApproval: asks !== '',
    isBackground: background !== '',
    isStructured: structuredMark !== '',
    isOfConversation: ofConversation !== '',
  }
}

/** Returns the id without dashes, as ids of OpenAI are. */
export const plainUuid = (uuid: string): string => uuid.replaceAll('-', '')

const dashedUuid = (hex: string): string => hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

/** Returns the UUID in the id of a message, a reasoning or an approval request; undefined for any other text. */
export function uuidIn(itemId: string): string | undefined {
  const [, hex] =
    /^(?:(?:msg|rs)_([0-9a-f]{32})$|mcpr_([0-9a-f]{32})_)/.exec(itemId)?.filter((part) => part !== undefined) ?? []
  return hex === undefined ? undefined : dashedUuid(hex)
}

export const formatConversationId = (id: string): string => `conv_${plainUuid(id)}`

/** Undefined for any other text. */
export function parseConversationId(text: string): string | undefined {
  const [, hex] = /^conv_([0-9a-f]{32})$/.exec(text) ?? []
  return hex === undefined ? undefined : dashedUuid(hex)
}

export type ApprovalId = { readonly conversationId: string; readonly requestId: string; readonly toolUseId: string }

export const approvalId = ({ conversationId, requestId, toolUseId }: ApprovalId): string =>
  `mcpr_${plainUuid(conversationId)}_${plainUuid(requestId)}_${toolUseId}`

/** Undefined for any other text. */
export function parseApprovalId(text: string): ApprovalId | undefined {
  const [, conversation = '', request, toolUseId] = /^mcpr_([0-9a-f]{32})_([0-9a-f]{32})_(.+)$/.exec(text) ?? []
  if (request === undefined || toolUseId === undefined) return undefined
  return { conversationId: dashedUuid(conversation), requestId: dashedUuid(request), toolUseId }
}

/** What is before the `Idempotency-Key` of a request in the key of the conversation that it makes. */
export const CREATION_PREFIX = 'response '
