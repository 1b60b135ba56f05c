/**
 * The `reasoning_details` of OpenRouter, joined from their pieces. Gemini and Claude refuse tool calls, or lose their
 * thoughts, unless the details are sent back unchanged.
 */
import { AnswerTooLarge } from './answer-limits.ts'
import type { Fields } from './fields.ts'

const MAX_DETAILS = 2000

/** Fields that come in pieces. */
const TEXTS = ['text', 'summary'] as const

export class ReasoningDetails {
  readonly #details: Record<string, unknown>[] = []

  /** Throws `AnswerTooLarge`. */
  add(pieces: readonly Fields[]): void {
    for (const piece of pieces) {
      const last = this.#details.at(-1)
      if (last && continues(last, piece)) join(last, piece)
      else if (this.#details.length < MAX_DETAILS) this.#details.push({ ...piece })
      else throw new AnswerTooLarge(`it has more than ${MAX_DETAILS} details of its reasoning`)
    }
  }

  /** Returns a JSON object, or undefined if nothing has to be sent back: plain text is of no use to the model. */
  finish(finalIds: ReadonlyMap<string, string> = new Map()): string | undefined {
    const isProof = ({ signature, data }: Fields) => Boolean(signature ?? data)
    if (!this.#details.some(isProof)) return undefined
    // The details of Gemini have the ids of its calls.
    const withFinalId = (detail: Fields) => {
      const id = typeof detail['id'] === 'string' ? finalIds.get(detail['id']) : undefined
      return id === undefined ? detail : { ...detail, id }
    }
    return JSON.stringify({ reasoning_details: this.#details.map(withFinalId) })
  }
}

const continues = (last: Fields, piece: Fields): boolean =>
  last['type'] === piece['type'] &&
  last['index'] === piece['index'] &&
  (piece['type'] === 'reasoning.text' || piece['type'] === 'reasoning.summary')

function join(last: Record<string, unknown>, piece: Fields): void {
  for (const [name, value] of Object.entries(piece)) {
    const before = last[name]
    const isText = TEXTS.some((each) => each === name) && typeof before === 'string' && typeof value === 'string'
    if (isText) last[name] = before + value
    else if (value !== null && value !== undefined) last[name] = value
  }
}
