/** Times, durations, sizes and costs, in the language of the page. */
import { language } from '../state/preferences.ts'
import { serverNow } from '../state/server-time.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function clock(time: string | number): string {
  return new Date(time).toLocaleTimeString(language.value, { hour: '2-digit', minute: '2-digit' })
}

/** Today without the date. */
export function moment(time: string): string {
  const at = new Date(time)
  if (at.toDateString() === new Date(serverNow()).toDateString())
    return at.toLocaleTimeString(language.value, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  return at.toLocaleString(language.value, { dateStyle: 'medium', timeStyle: 'short' })
}

/** Returns how long ago, in one unit, which is written as in durations. */
export function age(time: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(time))
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return ms < DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`
}

export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0)} s`
  const minutes = Math.floor(ms / MINUTE)
  return ms < HOUR
    ? `${minutes} min ${Math.floor((ms % MINUTE) / SECOND)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function cost(usd: number): string {
  const digits = usd !== 0 && usd < 0.01 ? 4 : 2
  return usd.toLocaleString(language.value, {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}

export function count(amount: number): string {
  return amount.toLocaleString(language.value)
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const [amount, unit] = bytes < 1e6 ? [bytes / 1e3, 'kB'] : bytes < 1e9 ? [bytes / 1e6, 'MB'] : [bytes / 1e9, 'GB']
  return `${amount.toFixed(amount < 10 ? 1 : 0)} ${unit}`
}
