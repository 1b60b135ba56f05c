/** Turns what a client sent into the outcome of a call: bounded, with a message if the call failed. Pure. */
import type { ClientResult, ToolOutcome } from './tool-call.ts'
import { partsOfOutput, textOfParts } from '../contract/values/output-text.ts'

/** Characters of text that the model reads. The `RequestAnswered` event has all of it. */
const MAX_SHOWN_CHARS = 100_000
const MAX_MESSAGE_CHARS = 2000

const IN_TIME = 'No client sent a result before the deadline. It is not known what the client did.'

export function outcomeOf(result: ClientResult): ToolOutcome {
  if (result === 'timeout') return { output: IN_TIME, error: { type: 'timeout', message: IN_TIME } }
  const { output: givenOutput, isError } = result
  const output = boundOutput(givenOutput)
  return {
    output,
    ...(output !== givenOutput && { truncated: true }),
    ...(isError && { error: { type: 'failed' as const, message: messageOf(output) } }),
  }
}

/** Returns the same value if it is short enough. Many parts are bounded together, as one text. */
function boundOutput(output: unknown): unknown {
  if (typeof output === 'string') return cutMiddle(output)
  const parts = partsOfOutput(output) ?? []
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const text = parts.length > 0 ? texts.join('\n') : JSON.stringify(output)
  if (text.length <= MAX_SHOWN_CHARS) return output
  const images = parts.filter(({ type }) => type === 'image')
  return images.length > 0 ? [{ type: 'text', text: cutMiddle(text) }, ...images] : cutMiddle(text)
}

function cutMiddle(text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text
  const half = MAX_SHOWN_CHARS / 2
  const [head, tail] = [text.slice(0, half).toWellFormed(), text.slice(-half).toWellFormed()]
  return `${head}\n[… ${text.length - MAX_SHOWN_CHARS} characters are left out …]\n${tail}`
}

function messageOf(output: unknown): string {
  const parts = partsOfOutput(output)
  const text = typeof output === 'string' ? output : parts ? textOfParts(parts) : JSON.stringify(output)
  return text.trim().slice(0, MAX_MESSAGE_CHARS).toWellFormed() || 'The client reported an error without a message.'
}
