/** Maximum sizes of an answer. A server that sends more is broken or malicious, and must not exhaust memory or time. */

/** Text, reasoning and arguments together; the longest outputs that models offer are a quarter of it. */
export const MAX_ANSWER_CHARS = 4 * 1024 * 1024

/** One server-sent event, or a whole answer that is not streamed. JSON may encode a character as six. */
export const MAX_EVENT_CHARS = 8 * 1024 * 1024

export const MAX_TOOL_CALLS = 128

/**
 * The values in the arguments of all calls together, names of objects included: small values cost far more time than their
 * characters. A single call may hold half of them.
 */
export const MAX_CALL_VALUES = 100_000

/** The length of a tool's name and of the id of a call. */
export const MAX_NAME_CHARS = 256

/** The length of the model name and of the finish reason. */
export const MAX_WORD_CHARS = 200

/** The size of the body of an error; only its message is used. */
export const MAX_ERROR_BYTES = 64 * 1024

/** How long to wait for the rest of an error's body, in milliseconds. */
export const ERROR_BODY_TIMEOUT_MS = 10_000

/** The answer exceeds one of these limits; the message is a clause that says which. */
export class AnswerTooLarge extends Error {}
