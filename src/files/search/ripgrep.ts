/**
 * Lets external programs find files that may contain a text. They work by name, and names can be swapped: their results
 * are hints, and are verified.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { splitNulFields } from '../../lib/text/nul-fields.ts'
import type { Needle } from './find-lines.ts'
import type { OpenedPath } from '../opened-path.ts'
import { within } from '../opened-path.ts'

/** Longer paths are skipped. */
const MAX_PATH_BYTES = 64 * 1024

/**
 * ripgrep keeps a whole line in memory, and a file can be one line. Larger files are searched by our code, in bounded
 * memory.
 */
export const MAX_RIPGREP_FILE_BYTES = 16 * 1024 * 1024

/** A file can grow after its size was checked, and a directory can contain any number of names. */
const MAX_MEMORY_KIB = 512 * 1024

/** Finds every file that our own search would find, in the same order, and perhaps more. */
const OPTIONS = [
  '--no-config',
  '--files-with-matches',
  '--null',
  '--fixed-strings',
  // Binary files and text encodings are decided in one place: find-lines.ts.
  '--text',
  '--encoding=none',
  '--hidden',
  '--no-ignore',
  '--no-follow',
  '--no-messages',
  // A file that shrinks while it is mapped would crash it.
  '--no-mmap',
  `--max-filesize=${MAX_RIPGREP_FILE_BYTES}`,
  '--sort=path',
  // Pass the text through its standard input: arguments are visible to everybody on the host.
  '--file=-',
]

export type RipgrepQuery = {
  readonly directory: OpenedPath
  readonly signal: AbortSignal
  /** Called if the program did not finish, or could not be started. */
  readonly onCutShort: () => void
}

/**
 * Yields names relative to the directory, of files up to `MAX_RIPGREP_FILE_BYTES`. Ends early when `signal` is aborted.
 */
export function filesWith(ripgrep: string, needle: Needle, asked: RipgrepQuery): AsyncGenerator<readonly Buffer[]> {
  const caseOption = needle.ignoreCase ? '--ignore-case' : '--case-sensitive'
  return pathsFrom([ripgrep, ...OPTIONS, caseOption, '--', './'], needle.bytes, asked)
}

/** Yields the larger files, in any order. */
export function largeFiles(asked: RipgrepQuery): AsyncGenerator<readonly Buffer[]> {
  const size = `+${MAX_RIPGREP_FILE_BYTES}c`
  return pathsFrom(['find', './', '-type', 'f', '-size', size, '-print0'], undefined, asked)
}

async function* pathsFrom(
  command: readonly string[],
  input: Buffer | undefined,
  { directory, signal, onCutShort }: RipgrepQuery,
): AsyncGenerator<readonly Buffer[]> {
  const script = `ulimit -v ${MAX_MEMORY_KIB}; exec "$@" 2>/dev/null`
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...command], {
    cwd: within(directory, '.'),
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    stdio: ['pipe', 'pipe', 'ignore'],
    signal,
    killSignal: 'SIGKILL',
  })
  // An abort ends its output; that is expected.
  child.on('error', () => {})
  child.stdin.on('error', () => {}).end(input)
  const exited = once(child, 'exit').catch(() => [null])
  try {
    yield* pathsIn(child.stdout)
    const [code] = await exited
    // 1: nothing found; 2: something could not be read; from 126 on: the shell could not start it.
    if (typeof code !== 'number' || code > MAX_EXIT_CODE) onCutShort()
  } finally {
    child.kill('SIGKILL')
  }
}

const MAX_EXIT_CODE = 2

async function* pathsIn(output: Readable): AsyncGenerator<readonly Buffer[]> {
  let paths: Buffer[] = []
  const split = splitNulFields(MAX_PATH_BYTES, (path) => path && paths.push(path))
  for await (const chunk of output) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
    split(chunk as Buffer)
    for (const path of paths) yield namesOf(path)
    paths = []
  }
}

/** `./a/b` -> `a`, `b`. */
function namesOf(path: Buffer): Buffer[] {
  const names = path.toString('latin1').replace(/^\.\//, '').split('/')
  return names.map((name) => Buffer.from(name, 'latin1'))
}
