/** Conversations that a person does not want to be called for. */
import { effect, signal } from '@preact/signals'
import { remember, remembered } from './remembered.ts'

const NAME = 'muted'
/** Conversations that are gone stay in the list: the oldest are forgotten. */
const MOST = 500

export const muted = signal<ReadonlySet<string>>(new Set(remembered(NAME)?.split(' ')))
effect(() => remember(NAME, [...muted.value].slice(-MOST).join(' ')))

export function mute(id: string, isMuted: boolean): void {
  muted.value = new Set([...muted.value].filter((other) => other !== id).concat(isMuted ? [id] : []))
}
