/** What a person has chosen for this page: language, look, keys and notifications. Kept by the browser. */
import { computed, effect, signal } from '@preact/signals'
import type { Texts } from '../texts/english.ts'
import { ENGLISH } from '../texts/english.ts'
import { onOtherTab, remember, rememberedValue } from './remembered.ts'

export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const
export type PageLanguage = keyof typeof LANGUAGES
export const LOOKS = ['system', 'light', 'dark'] as const
export type PageLook = (typeof LOOKS)[number]

const isLanguage = (value: string): value is PageLanguage => Object.hasOwn(LANGUAGES, value)
const isLook = (value: string): value is PageLook => LOOKS.some((look) => look === value)

const choice = <T extends string>(name: string, accept: (value: string) => value is T, otherwise: T) => {
  const choiceIn = (value: string | undefined) => (value !== undefined && accept(value) ? value : otherwise)
  const chosenValue = signal<T>(choiceIn(rememberedValue(name)))
  onOtherTab(name, (value) => (chosenValue.value = choiceIn(value)))
  effect(() => remember(name, chosenValue.value))
  return chosenValue
}
const isOnOff = (value: string): value is 'on' | 'off' => value === 'on' || value === 'off'

const ofBrowser = navigator.language.slice(0, 2)

export const language = choice('language', isLanguage, isLanguage(ofBrowser) ? ofBrowser : 'en')
export const look = choice('look', isLook, 'system')
export const singleKeys = choice('single-keys', isOnOff, 'on')
export const notifications = choice('notifications', isOnOff, 'off')
export const hidesContent = choice('notifications-without-content', isOnOff, 'off')

/** Loaded where somebody wants it: the first screen is smaller without it. */
const german = signal<Texts>()
export const texts = computed<Texts>(() => (language.value === 'de' && german.value) || ENGLISH)

effect(() => {
  if (language.value !== 'de' || german.value) return
  // Without it, as after an update of the server, the page speaks English until it is loaded again.
  import('../texts/german.ts').then(({ GERMAN }) => (german.value = GERMAN)).catch(() => {})
})

effect(() => {
  document.documentElement.lang = language.value
  document.documentElement.dataset['look'] = look.value
})
