/** Whether the server has another version of this page than the open one: it was upgraded while the page was open. */
import { effect, signal } from '@preact/signals'
import { connections, messageOf, recoveries } from './session.ts'

export const isOutdated = signal(false)

/** A page that was loaded so long ago, milliseconds, may be older than the server before its first connection, too. */
const FRESH_MS = 60_000

/** Compares the two when a lost connection is there again, and when somebody logs in late. Returns what ends it. */
export const watchVersion = (): (() => void) =>
  effect(() => {
    const isOld = recoveries.value > 0 || performance.now() > FRESH_MS
    if (connections.value > 0 && isOld) look().catch((error: unknown) => void messageOf(error))
  })

/** The page names its script by a hash of what is in it. */
async function look(): Promise<void> {
  const script = document.querySelector('script[src]')?.getAttribute('src')
  const response = await fetch('./')
  const page = await response.text()
  // A proxy may answer with a page that is not this one.
  if (response.ok && script && page.includes('id="app"')) isOutdated.value = !page.includes(script)
}
