/** The time, for texts such as "14 s": one timer for all of them. */
import { signal } from '@preact/signals'
import { serverNow } from '../state/server-time.ts'

export const now = signal(serverNow())
setInterval(() => {
  if (!document.hidden) now.value = serverNow()
}, 1000)
