/** Asks ripgrep which files hold a text. It follows names, which can be swapped under it: what it says is a hint, and is looked at again. */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { splitNulFields } from '../lib/nul-fields.ts'
import type { Needle } from './find-lines.ts'
import type { Place } from './open-place.ts'
import { within } from './open-place.ts'

/** Longer paths are passed over. */
const MAX_PATH_BYTES = 64 * 1024

/** Every file that our own search would find, in the same order, and perhaps more. */
const OPTIONS = [
  '--no-config',
  '--files-with-matches',
  '--null',
  '--fixed-strings',
  // What is binary, and what is text in which encoding, is decided once: in find-lines.ts.
  '--text',
  '--encoding=none',
  '--hidden',
  '--no-ignore',
  '--no-follow',
  '--no-messages',
  // A file that shrinks while it is mapped would kill it.
  '--no-mmap',
  '--sort=path',
  // The text comes over its input: arguments are seen by everybody on the host.
  '--file=-',
]

/** Names from the directory on. Ends early when `signal` is aborted. */
export async function* filesWith(
  ripgrep: string,
  directory: Place,
  needle: Needle,
  signal: AbortSignal,
): AsyncGenerator<readonly Buffer[]> {
  const caseOption = needle.ignoreCase ? '--ignore-case' : '--case-sensitive'
  const child = spawn(ripgrep, [...OPTIONS, caseOption, '--', './'], {
    cwd: within(directory, '.'),
    env: {},
    stdio: ['pipe', 'pipe', 'ignore'],
    signal,
    killSignal: 'SIGKILL',
  })
  // An abort ends its output, and that is all there is to know of it.
  child.on('error', () => {})
  child.stdin.on('error', () => {}).end(needle.bytes)
  try {
    yield* pathsIn(child.stdout)
  } finally {
    child.kill('SIGKILL')
  }
}

async function* pathsIn(output: Readable): AsyncGenerator<readonly Buffer[]> {
  let paths: Buffer[] = []
  const split = splitNulFields(MAX_PATH_BYTES, (path) => path && paths.push(path))
  for await (const chunk of output) {
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
