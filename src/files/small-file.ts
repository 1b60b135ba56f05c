/**
 * Reads small files that somebody names: settings, keys, scripts. Their names can be wrong or hostile, so a device, a
 * directory or an endless file is refused, and a pipe without a writer does not block. A pipe with one is read to its end,
 * such as that of `<(command)` in a shell.
 */
import type { Stats } from 'node:fs'
import { closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../lib/error-code.ts'

/** Larger files are never settings. */
const MAX_BYTES = 1024 * 1024
/** How often a pipe is looked at, in milliseconds. */
const POLL_MS = 20
/** How long `readSmallFile` waits for the end of a pipe: its writer may ask a person for a password. */
const MAX_WAIT_MS = 120_000
/** The same for `readSmallFileSync`, which blocks everything else. */
const MAX_BLOCKING_WAIT_MS = 30_000
/** How long a named pipe may have no writer. Programs that keep keys begin to write when they see a reader. */
const MAX_WAIT_FOR_WRITER_MS = 2000

/** Throws an error that `whyUnreadable` describes, or the reason of the signal. */
export async function readSmallFile(path: string, signal?: AbortSignal): Promise<Buffer> {
  const reading = reader(path, MAX_WAIT_MS)
  using _closing = { [Symbol.dispose]: () => close(reading) }
  for (;;) {
    const step = reading.next()
    if (step.done) return step.value
    await sleep(POLL_MS, undefined, { signal })
  }
}

/** Throws an error that `whyUnreadable` describes. */
export function readSmallFileSync(path: string): Buffer {
  const reading = reader(path, MAX_BLOCKING_WAIT_MS)
  using _closing = { [Symbol.dispose]: () => close(reading) }
  for (;;) {
    const step = reading.next()
    if (step.done) return step.value
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS)
  }
}

/** True for a named pipe, that of a shell's `<(command)`, and a pipe on stdin: what they contain can be read only once. */
export const isPipe = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFIFO() === true

/** Node 22, where the npm package also runs, has no disposable generators. */
const close = (reading: Reading): void => void reading.return(Buffer.alloc(0))

/** A phrase for a sentence: the code of the system, or what is wrong with the file. */
export const whyUnreadable = (error: unknown): string =>
  error instanceof UnsuitableFile ? error.message : (codeOf(error) ?? 'error')

class UnsuitableFile extends Error {
  override readonly name = 'UnsuitableFile'
}

type Reading = Generator<void, Buffer, void>

/** Yields when it has to wait, and returns the whole file. */
function* reader(path: string, maxWaitMs: number): Reading {
  requireSuitable(path)
  const start = performance.now()
  const isNamed = isPipe(path) && existsByName(path)
  // The system would wait, without O_NONBLOCK, for the writer of a named pipe, and neither a signal nor an exit ends
  // that.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  try {
    const bytes = Buffer.allocUnsafe(MAX_BYTES + 1)
    let length = 0
    for (;;) {
      const readBytes = readSome(fd, bytes, length)
      const waitedMs = performance.now() - start
      const mayBegin = isNamed && length === 0 && waitedMs < MAX_WAIT_FOR_WRITER_MS
      if (readBytes === 0 && !mayBegin) return Buffer.from(bytes.subarray(0, length))
      if (readBytes) length += readBytes
      else if (waitedMs > maxWaitMs) throw new UnsuitableFile('it is a pipe whose writer does not end')
      else yield
      if (length > MAX_BYTES) throw new UnsuitableFile('it is larger than 1 MiB')
    }
  } finally {
    closeSync(fd)
  }
}

/** False for a pipe between two programs, whose writer has it open from the beginning. */
function existsByName(path: string): boolean {
  try {
    return realpathSync(path) !== ''
  } catch {
    return false
  }
}

/** Refuses devices by their names: to open one can have effects. */
function requireSuitable(path: string): void {
  const stats = statSync(path)
  // Reading a directory fails with a code that says so.
  const isSuitable = stats.isFile() || stats.isFIFO() || stats.isDirectory() || isNull(stats)
  if (!isSuitable) throw new UnsuitableFile('it is not a regular file')
  if (stats.size > MAX_BYTES) throw new UnsuitableFile('it is larger than 1 MiB')
}

/** `/dev/null` stands for an empty file, also under another name, as containers mount it. */
const isNull = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === statSync('/dev/null').rdev

/** Returns undefined while a pipe has nothing to read. */
function readSome(fd: number, bytes: Buffer, offset: number): number | undefined {
  try {
    return readSync(fd, bytes, offset, bytes.length - offset, null)
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return undefined
    throw error
  }
}
