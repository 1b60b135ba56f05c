/** The id of an answer in this protocol says where its turn begins in the log: nothing else has to be kept. */

const ANSWER_ID = /^msg_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_([1-9]\d{0,14})$/

/** `start`: seq of the event that the turn begins with. */
export type AnswerPlace = { readonly conversationId: string; readonly start: number }

export const formatAnswerId = ({ conversationId, start }: AnswerPlace): string =>
  `msg_${conversationId.replaceAll('-', '')}_${start}`

export function parseAnswerId(text: string): AnswerPlace | undefined {
  const match = ANSWER_ID.exec(text)
  return match ? { conversationId: match.slice(1, 6).join('-'), start: Number(match[6]) } : undefined
}

/** The id of an approval names the request and the call. */
export const formatApprovalRef = (requestId: string, toolUseId: string): string => `${requestId}:${toolUseId}`
