/** The last message of a subagent, as the agent that called it reads it: bounded, as every result of a tool is. */

/** The length of about 12,000 tokens: several such messages fit into one context. */
const MAX_MESSAGE_CHARS = 50_000

/** The part of the kept characters that comes from the beginning. */
const HEAD_PART = 0.7

export const isTooLong = (text: string): boolean => text.length > MAX_MESSAGE_CHARS

/** Keeps the beginning and the end of a long text. */
export function boundMessage(text: string): string {
  if (!isTooLong(text)) return text
  const head = Math.floor(MAX_MESSAGE_CHARS * HEAD_PART)
  const tail = MAX_MESSAGE_CHARS - head
  const note = `[${text.length - MAX_MESSAGE_CHARS} characters are left out here. If you need them, continue the subagent with resume and ask for that part.]`
  // A cut may halve a character.
  return `${text.slice(0, head).toWellFormed()}\n${note}\n${text.slice(-tail).toWellFormed()}`
}
