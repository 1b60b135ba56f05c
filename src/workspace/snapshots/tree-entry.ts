/** What a snapshot knows of a tree: its entries by path. Paths are bytes as characters (latin1), so that any name is one. */
import type { Stats } from 'node:fs'

/** Larger files are left out. */
export const MAX_FILE_BYTES = 10 * 1024 ** 2
/** The mode bits that a snapshot keeps. */
export const MODE_BITS = 0o7777
/** What a restore gives to files of them: it makes no set-user-ID and no set-group-ID program. */
export const FILE_MODE = 0o1777
/** What the owner of a directory needs to change its entries. */
export const WRITABLE = 0o700

/** `directory` is written down where it is empty or has unusual bits. */
export type TreeEntryKind = 'file' | 'symlink' | 'directory'

export type TreeEntry = {
  readonly kind: TreeEntryKind
  /** Permission bits, with set-user-ID, set-group-ID and sticky. */
  readonly mode: number
  /** The name in git of the content, or of the target of a link. Empty for a directory. */
  readonly blob: string
  /**
   * The stats by which a later look knows the file as unchanged; undefined if it may have changed within their
   * resolution.
   */
  readonly seen: FileStat | undefined
}

export type FileStat = {
  readonly size: number
  /** Milliseconds, with what precision a double has: a quarter of a microsecond. */
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly ino: number
}

export const LEFT_OUT_REASONS = ['ignored', 'too_large', 'unreadable', 'special', 'hidden'] as const
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number]

/** A path that a snapshot does not contain, with everything below. */
export type LeftOut = { readonly path: string; readonly reason: LeftOutReason }

/** What is below one directory: the workdir, or an additional one. */
export type RootTree = {
  readonly entries: ReadonlyMap<string, TreeEntry>
  readonly leftOut: readonly LeftOut[]
}

export const toBytes = (path: string): Buffer => Buffer.from(path, 'latin1')
/** Returns the path as it is shown: what is not UTF-8 becomes replacement characters. */
export const shownPath = (path: string): string => toBytes(path).toString('utf8')
/** A path as the API has it. */
export const givenPath = (path: string): string => Buffer.from(path, 'utf8').toString('latin1')

export const isSameStat = (a: FileStat, b: FileStat): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino

/** The trees of a snapshot, by the real path of their directory, or what `RootKeys` has for it. */
export type Trees = ReadonlyMap<string, RootTree>

/** A file is known when its times are older than this, in milliseconds; times of some file systems are whole seconds. */
export const FINE_MS = 50
const COARSE_MS = 2000

/**
 * Undefined if the file may change again without another time, or has changed while it was read. `began`: the time of day before
 * anything was read, in milliseconds.
 */
export function settledStat(stats: Stats, length: number, began: number): FileStat | undefined {
  const { size, mtimeMs, ctimeMs, ino } = stats
  const resolution = mtimeMs % 1000 === 0 && ctimeMs % 1000 === 0 ? COARSE_MS : FINE_MS
  const isSettled = Math.max(mtimeMs, ctimeMs) < began - resolution
  return isSettled && size === length ? { size, mtimeMs, ctimeMs, ino } : undefined
}
