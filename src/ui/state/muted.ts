/** Conversations that a person does not want to be called for. */
import { effect, signal } from '@preact/signals'
import { onOtherTab, remember, rememberedValue } from './remembered.ts'

const NAME = 'muted'
/** Conversations that are gone stay in the list: the oldest are forgotten. */
const MOST = 500

const idsIn = (value: string | undefined): ReadonlySet<string> => new Set(value?.split(' '))

export const mutedConversations = signal(idsIn(rememberedValue(NAME)))
onOtherTab(NAME, (value) => (mutedConversations.value = idsIn(value)))
effect(() => remember(NAME, [...mutedConversations.value].slice(-MOST).join(' ')))

export function mute(id: string, isMuted: boolean): void {
  mutedConversations.value = new Set(
    [...mutedConversations.value].filter((other) => other !== id).concat(isMuted ? [id] : []),
  )
}
