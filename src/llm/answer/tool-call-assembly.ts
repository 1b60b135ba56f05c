/**
 * Assembles tool calls from streamed fragments, and determines which are complete.
 *
 * In the standard form a fragment has an index, and the first of a call brings id and name. Some vendors send no index,
 * or index 0 for every parallel call, the id or the name in each fragment or in none, arguments as one object or not at
 * all, and the whole call once more at the end.
 */
import { createHash, randomBytes } from 'node:crypto'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import { AnswerTooLarge, MAX_CALL_VALUES, MAX_NAME_CHARS, MAX_TOOL_CALLS } from './answer-limits.ts'
import type { ModelToolCall, TakenIds } from '../llm.ts'
import { createObjectWatch } from './object-watch.ts'

export type CallFragment = {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  /** A piece of the JSON text, or all of it as a value. */
  readonly arguments: unknown
  /** What has to be sent back with the call, unchanged, as JSON. */
  readonly extra?: string | undefined
}

type OpenCall = {
  index: number | undefined
  id: string
  /** The id that the call gets, once its input was shown with it. */
  finalId?: string
  name: string
  text: string
  extra?: string | undefined
}
/** Detects whether the text is a complete object, without scanning all of it again for each fragment. */
type WatchedCall = OpenCall & {
  /** Returns how many values the piece adds. */
  readonly add: (piece: string) => number
  readonly isWhole: () => boolean
}

export type ToolCallAssembly = {
  /** Returns the final ids of the calls so far, by those that the server sent. */
  finalIds(): ReadonlyMap<string, string>
  /** The calls so far, complete or not. */
  readonly calls: readonly Readonly<OpenCall>[]
  /**
   * Returns the call that the fragment belongs to, with its final id, and the piece of input it adds. Throws
   * `AnswerTooLarge`.
   */
  add(fragment: CallFragment): {
    readonly call: number
    readonly id: string
    readonly name: string
    readonly text: string
  }
  /**
   * Returns the calls in order, each with an id that is unique in the conversation. With `isCertain`, the model is
   * known to have ended them: all are returned, and missing arguments mean `{}`. Without it, only calls with complete
   * arguments are.
   */
  finish(options: { isCertain: boolean }): {
    readonly calls: ModelToolCall[]
    /** What has to be sent back with each of the calls. */
    readonly extras: readonly (string | undefined)[]
    readonly incomplete: number
  }
}

/** Makes each call get a new id. */
export const EVERY_ID: TakenIds = { has: () => true }

export function createToolCallAssembly(takenIds: TakenIds): ToolCallAssembly {
  const calls: WatchedCall[] = []
  const own = new Set<string>()
  let values = 0

  function finalIdOf(call: OpenCall): string {
    if (call.finalId !== undefined) return call.finalId
    const isTaken = call.id === '' || own.has(call.id) || takenIds.has(call.id)
    call.finalId = isTaken ? `call_${randomBytes(12).toString('hex')}` : call.id
    own.add(call.finalId)
    return call.finalId
  }

  function callOf(fragment: CallFragment): WatchedCall {
    const knownCall = calls.findLast((call) => belongsTo(call, fragment, call === calls.at(-1)))
    if (knownCall) return knownCall
    if (calls.length === MAX_TOOL_CALLS) throw new AnswerTooLarge(`it has more than ${MAX_TOOL_CALLS} tool calls`)
    const call = createCall(fragment)
    calls.push(call)
    return call
  }

  return {
    calls,
    finalIds: () => new Map(calls.map((call) => [call.id, finalIdOf(call)])),
    add(callFragment) {
      const fragment = withShortId(callFragment)
      const call = callOf(fragment)
      call.id ||= fragment.id
      call.extra ??= fragment.extra
      call.name = fragment.name.startsWith(call.name) ? fragment.name : call.name + fragment.name
      if (call.name.length > MAX_NAME_CHARS)
        throw new AnswerTooLarge(`the name of a tool call is longer than ${MAX_NAME_CHARS} characters`)
      const piece = pieceOf(fragment.arguments)
      const text = repeatsWhole(call, piece) ? '' : piece
      values += call.add(text)
      if (values > MAX_CALL_VALUES) throw new AnswerTooLarge(`its tool calls hold more than ${MAX_CALL_VALUES} values`)
      const id = text === '' ? '' : finalIdOf(call)
      return { call: calls.indexOf(call), id, name: call.name, text }
    },
    finish({ isCertain }) {
      const whole = calls.filter((call) => isCertain || parseJsonObject(call.text))
      return {
        calls: whole.map((call) => ({
          id: finalIdOf(call),
          name: call.name,
          arguments: ['', 'null'].includes(call.text.trim()) ? '{}' : call.text,
        })),
        extras: whole.map(({ extra }) => extra),
        incomplete: calls.length - whole.length,
      }
    },
  }
}

/** LiteLLM puts the signatures of Gemini into ids, which then have kilobytes; it works without them. */
function withShortId(fragment: CallFragment): CallFragment {
  if (fragment.id.length <= MAX_NAME_CHARS) return fragment
  return { ...fragment, id: `call_${createHash('sha256').update(fragment.id).digest('hex').slice(0, 32)}` }
}

function createCall({ index, id }: CallFragment): WatchedCall {
  const watch = createObjectWatch()
  let isValid: boolean | undefined
  return {
    index,
    id,
    name: '',
    text: '',
    add(piece) {
      this.text += piece
      const before = watch.values
      watch.add(piece)
      return watch.values - before
    },
    // A closed object is final: anything after it is whitespace or makes it invalid.
    isWhole() {
      return watch.isClosed && (isValid ??= parseJsonObject(this.text) !== undefined)
    },
  }
}

function belongsTo(call: WatchedCall, fragment: CallFragment, isLast: boolean): boolean {
  const hasItsPlace =
    fragment.index === undefined
      ? isLast || (fragment.id !== '' && fragment.id === call.id)
      : fragment.index === call.index
  return hasItsPlace && !beginsAnother(call, fragment)
}

/** True if the fragment, although it has the place of this call, can only belong to the next one. */
function beginsAnother(call: WatchedCall, fragment: CallFragment): boolean {
  if (fragment.name === '') return false
  const piece = pieceOf(fragment.arguments)
  if (piece !== call.text && piece.trimStart().startsWith('{') && call.isWhole()) return true
  const hasOtherId = fragment.id !== '' && call.id !== '' && fragment.id !== call.id
  // Some vendors send a new id for one call in every fragment; then only the text can decide.
  return hasOtherId && (fragment.index === undefined || call.text === '' || call.isWhole())
}

function repeatsWhole(call: WatchedCall, piece: string): boolean {
  return piece !== '' && piece === call.text && call.isWhole()
}

function pieceOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}
