/** The `Range` header (RFC 9110, section 14): one part of a file. */

/** `end` is exclusive. */
export type ByteRange = { readonly start: number; readonly end: number }

/** Undefined where the whole is to be sent: no range, one that is none, or several, which nobody has to serve. */
export function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header?.replaceAll(' ', '') ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const count = Number(last)
    return count > 0 && size > 0 ? { start: Math.max(0, size - count), end: size } : 'unsatisfiable'
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size : Math.min(size, Number(last) + 1) }
}
