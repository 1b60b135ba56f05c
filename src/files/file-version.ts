/** What tells one content of a file from another without reading it: its strong entity tag. */
import type { BigIntStats } from 'node:fs'

/** With the change time, which nobody can set back, and the number of the file, which another one under the same name has not. */
export function etagOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `"${[ino, size, mtimeNs, ctimeNs].map((number) => number.toString(36)).join('-')}"`
}
