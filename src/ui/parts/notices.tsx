/** Short notices at the lower edge: what was done, with an undo where there is one, and what failed. */
import { signal } from '@preact/signals'
import { texts } from '../state/preferences.ts'
import { messageOf } from '../state/session.ts'
import { visible } from '../text/visible.ts'

type Notice = {
  readonly id: number
  readonly text: string
  readonly isFault: boolean
  readonly undo?: (() => void) | undefined
}

const notices = signal<readonly Notice[]>([])
let last = 0

const SHOWN_MS = 8000

export function notify(text: string, { isFault = false, undo }: { isFault?: boolean; undo?: () => void } = {}): void {
  const id = ++last
  notices.value = [...notices.value.slice(-3), { id, text, isFault, undo }]
  setTimeout(() => dismiss(id), SHOWN_MS)
}

/** Runs what a click starts, and says why it failed. */
export function attempt(work: () => Promise<unknown>): void {
  work().catch((error: unknown) => notify(messageOf(error), { isFault: true }))
}

const dismiss = (id: number) => (notices.value = notices.value.filter((notice) => notice.id !== id))

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, isFault, undo }) => (
        <div key={id} class={isFault ? 'notice fault' : 'notice'}>
          <span>{visible(text)}</span>
          {undo && (
            <button type="button" class="link" onClick={() => (dismiss(id), undo())}>
              {texts.value.undo}
            </button>
          )}
          <button type="button" class="icon" aria-label={texts.value.close} onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  )
}
