/** A button that copies a text. Over http from another machine, a browser has no clipboard, and there is no button. */
import type { ComponentChildren } from 'preact'
import { texts } from '../state/preferences.ts'
import { Action } from './action.tsx'
import { notify } from './notices.tsx'

type Props = { readonly textOf: () => string; readonly class?: string; readonly children: ComponentChildren }

export function Copy({ textOf, ...button }: Props) {
  if (!('clipboard' in navigator)) return null
  const copy = async () => {
    await navigator.clipboard.writeText(textOf())
    notify(texts.value.copied)
  }
  return <Action act={copy} {...button} />
}
