/** The time, for texts such as "14 s": one timer for all of them. */
import { computed, effect, signal } from '@preact/signals'
import { serverNow } from '../state/server-time.ts'

export const now = signal(serverNow())
// The first response says how wrong the clock of the browser is.
effect(() => void (now.value = serverNow()))
setInterval(() => {
  if (!document.hidden) now.value = serverNow()
}, 1000)

/** Changes each minute: what is open all day is read again. */
export const minute = computed(() => Math.floor(now.value / 60_000))
