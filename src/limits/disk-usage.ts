/**
 * Measures the disk usage of directories by du(1): blocks instead of lengths, hard links once, symbolic links not
 * followed, other file systems excluded. Runs in a separate process, which may take long without blocking anything.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { mapBounded } from '../lib/map-bounded.ts'
import { HostEnvironment, outputOf } from '../lib/start-process.ts'

const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 8 * 1024 ** 2
/** Bytes that count per file or directory in addition to its blocks: an empty file has none, but uses an inode. */
export const ENTRY_BYTES = 1024
const LARGEST = 3
/** Fraction of the largest. */
const WORTH_NAMING = 0.05
const READ_CONCURRENCY = 8

export type DiskUsage = {
  readonly bytes: number
  /** Directories that the server's user, their owner, cannot read: their content is not counted. */
  readonly hasUnreadable: boolean
}

export type Programs = { readonly du: string; readonly find: string }

/** Rejects if it takes too long, or the program fails otherwise. */
export async function measureDisk({ du, find }: Programs, roots: readonly string[]): Promise<DiskUsage> {
  const [blocks, entries] = await Promise.all([
    run(du, ['-s', '-x', '-k', '--', ...roots]),
    run(du, ['-s', '-x', '--inodes', '--', ...roots]),
  ])
  const bytes = sumOf(blocks.stdout) * 1024 + sumOf(entries.stdout) * ENTRY_BYTES
  const isIncomplete = /Permission denied/.test(blocks.stderr)
  return { bytes, hasUnreadable: isIncomplete && (await hasUnreadable(find, roots)) }
}

/**
 * Returns the largest direct entries of the roots, with their sizes in bytes. Empty if there are too many to measure.
 */
export async function findLargest(
  { du }: Programs,
  roots: readonly string[],
): Promise<[path: string, bytes: number][]> {
  const { stdout } = await run(du, ['-a', '-x', '-k', '-0', '-d', '1', '--', ...roots]).catch(() => ({ stdout: '' }))
  const all = stdout.split('\0').flatMap((line): [string, number][] => {
    const [size = '', ...path] = line.split('\t')
    return path.length > 0 && !roots.includes(path.join('\t')) ? [[path.join('\t'), Number(size) * 1024]] : []
  })
  const sortedSizes = all.toSorted(([, a], [, b]) => b - a)
  const most = sortedSizes[0]?.[1] ?? 0
  return sortedSizes.slice(0, LARGEST).filter(([, bytes]) => bytes > 0 && bytes >= most * WORTH_NAMING)
}

/**
 * Returns the bytes of deleted files that these processes hold open on the same disks as the roots: du(1) cannot see
 * them.
 */
export async function measureNameless(pids: readonly number[], roots: readonly string[]): Promise<number> {
  const devices = new Set(
    (await Promise.all(roots.map((root) => stat(root).catch(() => undefined)))).map((s) => s?.dev),
  )
  const sizes = new Map<string, number>()
  await mapBounded(pids, READ_CONCURRENCY, async (pid) => {
    const names = await readdir(`/proc/${pid}/fd`).catch(() => [])
    for (const name of names) {
      const stats = await stat(join(`/proc/${pid}/fd`, name)).catch(() => undefined)
      if (stats?.isFile() && stats.nlink === 0 && devices.has(stats.dev))
        sizes.set(`${stats.dev} ${stats.ino}`, stats.blocks * 512)
    }
  })
  return sizes.values().reduce((sum, size) => sum + size, 0)
}

/** Directories of other users do not count: the agent cannot write there either. */
async function hasUnreadable(find: string, roots: readonly string[]): Promise<boolean> {
  const own = ['-type', 'd', '-uid', String(process.getuid?.() ?? 0), '!', '-perm', '-500', '-print', '-quit']
  return (await run(find, [...roots, '-xdev', ...own])).stdout !== ''
}

/** Files vanish during the count, so the exit code is unreliable. Missing data is reported in `stderr`. */
function run(file: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  // It writes English if there are no variables for languages.
  const env = HostEnvironment.plain
  return outputOf(file, args, { env, timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES })
}

const sumOf = (output: string) => output.matchAll(/^(\d+)\t/gm).reduce((sum, [, size]) => sum + Number(size), 0)
