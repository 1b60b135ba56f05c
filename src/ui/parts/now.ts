/** The time, for texts such as "14 s": one timer for all of them. */
import { signal } from '@preact/signals'

export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)
