/** Whether the server has another version of this page than the open one: it was upgraded while the page was open. */
import { effect, signal } from '@preact/signals'
import { connections, messageOf } from './session.ts'

export const isOutdated = signal(false)

/** Compares the two when a lost connection is there again. Returns what ends it. */
export const watchVersion = (): (() => void) =>
  effect(() => {
    if (connections.value > 1) look().catch((error: unknown) => void messageOf(error))
  })

/** The page names its script by a hash of what is in it. */
async function look(): Promise<void> {
  const script = document.querySelector('script[src]')?.getAttribute('src')
  const response = await fetch('./')
  const page = await response.text()
  // A proxy may answer with a page that is not this one.
  if (response.ok && script && page.includes('id="app"')) isOutdated.value = !page.includes(script)
}
