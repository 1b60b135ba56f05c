/** What an answer may come to at most. A server that sends more is broken or hostile, and must not fill memory or time. */

/** Text, reasoning and arguments together; the longest outputs that models offer are a quarter of it. */
export const MAX_ANSWER_CHARS = 4 * 1024 * 1024

/** One server-sent event, or a whole answer that is not streamed. JSON may write a character as six. */
export const MAX_EVENT_CHARS = 8 * 1024 * 1024

export const MAX_TOOL_CALLS = 128

/** Of a tool's name, and of the id of a call. */
export const MAX_NAME_CHARS = 256

/** Of what a provider says of the answer: which model, why it ended. */
export const MAX_WORD_CHARS = 200

/** Of an error's body; only the sentence in it is used. */
export const MAX_ERROR_BYTES = 64 * 1024

/** How long the rest of an error's body is waited for, milliseconds. */
export const ERROR_BODY_TIMEOUT_MS = 10_000

/** The answer goes beyond one of these; the message is a clause that says which. */
export class AnswerTooLarge extends Error {}
