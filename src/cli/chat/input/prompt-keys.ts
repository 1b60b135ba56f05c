/** The keys with which the chat is controlled, and what each of them does. */
import type { KeyId } from '@earendil-works/pi-tui'
import { matchesKey } from '@earendil-works/pi-tui'

export type ScreenHandlers = {
  /** `typed` is the same with the spaces around it. */
  readonly onSubmit: (text: string, typed: string) => void
  /** A message for the end of the run. */
  readonly onQueue: (text: string, typed: string) => void
  /** Called for the up key in an empty prompt: returns whether a queued message is in it now. */
  readonly onUnqueue: () => boolean
  readonly onEscape: () => void
  readonly onNextMode: () => void
  readonly onEditor: () => void
  /** Ctrl+C with an empty prompt. */
  readonly onCancel: () => void
  /** Ctrl+D with an empty prompt. */
  readonly onEnd: () => void
}

type KeyHandlers = Omit<ScreenHandlers, 'onSubmit' | 'onQueue'> & {
  readonly onQueue: () => void
  readonly onSearch: () => void
  readonly onClear: () => void
  readonly onExpand: () => void
  readonly onDrawAgain: () => void
  readonly onSuspend: () => void
}

type Key = readonly [KeyId, (handlers: KeyHandlers) => void]

const KEYS: readonly Key[] = [
  ['ctrl+r', ({ onSearch }) => onSearch()],
  ['shift+tab', ({ onNextMode }) => onNextMode()],
  ['ctrl+g', ({ onEditor }) => onEditor()],
  ['alt+enter', ({ onQueue }) => onQueue()],
  ['ctrl+o', ({ onExpand }) => onExpand()],
  ['ctrl+l', ({ onDrawAgain }) => onDrawAgain()],
  ['ctrl+z', ({ onSuspend }) => onSuspend()],
]
const KEYS_OF_TEXT: readonly Key[] = [...KEYS, ['ctrl+c', ({ onClear }) => onClear()]]
const KEYS_WITHOUT_TEXT: readonly Key[] = [
  ...KEYS,
  ['ctrl+c', ({ onCancel }) => onCancel()],
  ['ctrl+d', ({ onEnd }) => onEnd()],
]

const REMOVING: readonly KeyId[] = ['ctrl+u', 'ctrl+k', 'ctrl+w', 'alt+backspace', 'alt+d', 'alt+delete']

export const removesWords = (key: string): boolean => REMOVING.some((name) => matchesKey(key, name))

/** Returns false for a key of the panel or the prompt. */
export function handleKey(key: string, isEmpty: boolean, handlers: KeyHandlers): boolean {
  const foundKey = (isEmpty ? KEYS_WITHOUT_TEXT : KEYS_OF_TEXT).find(([name]) => matchesKey(key, name))
  foundKey?.[1](handlers)
  return foundKey !== undefined
}
