/**
 * Puts tool calls together from the fragments they are streamed in, and says which of them are whole.
 *
 * The plain case is a fragment with an index, the first of a call bringing id and name. What vendors really send also
 * has no index, or index 0 for every parallel call, the id or the name in each fragment or in none, arguments as one
 * object or not at all, and the whole call once more at the end.
 */
import { randomBytes } from 'node:crypto'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import { AnswerTooLarge, MAX_NAME_CHARS, MAX_TOOL_CALLS } from './answer-limits.ts'
import type { ModelToolCall } from '../llm.ts'
import { createObjectWatch } from './object-watch.ts'

export type CallFragment = {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  /** A piece of the JSON text, or the whole of it as a value. */
  readonly arguments: unknown
}

type OpenCall = {
  index: number | undefined
  id: string
  /** The id that the call gets, once its input was shown under it. */
  finalId?: string
  name: string
  text: string
}
/** Whether the text is a whole object, without reading all of it again for each fragment. */
type WatchedCall = OpenCall & { readonly add: (piece: string) => void; readonly isWhole: () => boolean }

export type ToolCallAssembly = {
  /** What there is so far, whole or not. */
  readonly calls: readonly Readonly<OpenCall>[]
  /** Which call the fragment belongs to, with its final id, and the piece of input it adds. Throws `AnswerTooLarge`. */
  add(fragment: CallFragment): {
    readonly call: number
    readonly id: string
    readonly name: string
    readonly text: string
  }
  /**
   * The calls, in order, each with an id that no other call of the conversation has. With `isCertain`, the model is known to have
   * ended them: they stand as they are, and no arguments mean `{}`. Without it only those with complete arguments do.
   */
  finish(options: { isCertain: boolean }): {
    readonly calls: ModelToolCall[]
    readonly incomplete: number
  }
}

/** `takenIds`: those of earlier calls of the conversation. */
export function createToolCallAssembly(takenIds: ReadonlySet<string>): ToolCallAssembly {
  const calls: WatchedCall[] = []
  const own = new Set<string>()

  function finalIdOf(call: OpenCall): string {
    if (call.finalId !== undefined) return call.finalId
    const isTaken = call.id === '' || own.has(call.id) || takenIds.has(call.id)
    call.finalId = isTaken ? `call_${randomBytes(12).toString('hex')}` : call.id
    own.add(call.finalId)
    return call.finalId
  }

  function callOf(fragment: CallFragment): WatchedCall {
    const known = calls.findLast((call) => belongsTo(call, fragment, call === calls.at(-1)))
    if (known) return known
    if (calls.length === MAX_TOOL_CALLS) throw new AnswerTooLarge(`it has more than ${MAX_TOOL_CALLS} tool calls`)
    const call = createCall(fragment)
    calls.push(call)
    return call
  }

  return {
    calls,
    add(fragment) {
      const call = callOf(fragment)
      call.id ||= fragment.id
      call.name = fragment.name.startsWith(call.name) ? fragment.name : call.name + fragment.name
      if (call.name.length > MAX_NAME_CHARS || call.id.length > MAX_NAME_CHARS)
        throw new AnswerTooLarge(`the name or id of a tool call is longer than ${MAX_NAME_CHARS} characters`)
      const piece = pieceOf(fragment.arguments)
      const text = repeatsWhole(call, piece) ? '' : piece
      call.add(text)
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
        incomplete: calls.length - whole.length,
      }
    },
  }
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
      watch.add(piece)
    },
    // Once closed, the object stays what it is: what could follow is whitespace, or leaves it open for good.
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

/** Whether the fragment, though it stands at the place of this call, can only be the next one. */
function beginsAnother(call: WatchedCall, fragment: CallFragment): boolean {
  if (fragment.name === '') return false
  const piece = pieceOf(fragment.arguments)
  if (piece !== call.text && piece.trimStart().startsWith('{') && call.isWhole()) return true
  const hasOtherId = fragment.id !== '' && call.id !== '' && fragment.id !== call.id
  // Some give one call a new id in every fragment; then only the text can tell.
  return hasOtherId && (fragment.index === undefined || call.text === '' || call.isWhole())
}

function repeatsWhole(call: WatchedCall, piece: string): boolean {
  return piece !== '' && piece === call.text && call.isWhole()
}

function pieceOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}
