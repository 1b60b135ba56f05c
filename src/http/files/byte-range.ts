/** Parses the `Range` header (RFC 9110, section 14) for one part of a file. */

/** `end` is exclusive. */
export type ByteRange = { readonly start: number; readonly end: number }

/**
 * Returns undefined to send the whole file: without a range, with an invalid one, or with several, which servers need
 * not support.
 */
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
