/** Identifies the content of a file without reading it: its strong entity tag. */
import type { BigIntStats } from 'node:fs'

/**
 * Includes the change time, which nobody can set back, and the inode number, which differs for another file with the
 * same name.
 */
export function etagOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `"${[ino, size, mtimeNs, ctimeNs].map((number) => number.toString(36)).join('-')}"`
}
