/**
 * Lets external programs find files that may contain a text. They work by name, and names can be swapped: their results
 * are hints, and are verified.
 */
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { HostEnvironment, startProcess } from '../../lib/start-process.ts'
import { splitNulFields } from '../../lib/text/nul-fields.ts'
import type { Needle } from './find-lines.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import { within } from '../jail/opened-path.ts'

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
export function filesWith(ripgrep: string, needle: Needle, query: RipgrepQuery): AsyncGenerator<readonly Buffer[]> {
  const caseOption = needle.ignoreCase ? '--ignore-case' : '--case-sensitive'
  return pathsFrom([ripgrep, ...OPTIONS, caseOption, '--', './'], needle.bytes, query)
}

/** What to look for in text. `pattern` is a regular expression in ripgrep's syntax. */
export type RegexQuery = {
  readonly pattern: string
  readonly ignoreCase: boolean
  /** Whether a match may reach over line ends, and `.` stands for them too. */
  readonly multiline: boolean
  /** A pattern of the names or paths of files, as ripgrep has them. */
  readonly glob: string | undefined
  /** A type of files, as ripgrep has them. */
  readonly type: string | undefined
  /** Names of directories that are left out. */
  readonly without: readonly string[]
}

/** The pattern comes over the input: arguments are seen by everybody on the host. A line end would begin another pattern. */
const patternInput = ({ pattern }: RegexQuery) => Buffer.from(pattern.replaceAll('\n', '\\n'))

const matchOptions = ({ ignoreCase, multiline }: RegexQuery) => [
  '--no-config',
  '--no-mmap',
  '--file=-',
  ignoreCase ? '--ignore-case' : '--case-sensitive',
  ...(multiline ? ['--multiline', '--multiline-dotall'] : []),
]

const fileOptions = ({ glob, type, without }: RegexQuery) => [
  ...(glob === undefined ? [] : [`--glob=${glob}`]),
  ...(type === undefined ? [] : [`--type=${type}`]),
  ...without.map((name) => `--glob=!${name}/`),
]

/** Returns why ripgrep does not take the query, in its own words; undefined when it does. */
export async function queryFault(ripgrep: string, query: RegexQuery, signal: AbortSignal): Promise<string | undefined> {
  const command = [ripgrep, ...matchOptions(query), ...fileOptions(query), '--', '/dev/null']
  const child = spawnLimited(command, patternInput(query), { signal, errors: 'pipe' })
  child.stdout.resume()
  let errorText = ''
  for await (const chunk of child.stderr ?? []) errorText = (errorText + String(chunk)).slice(0, MAX_FAULT_CHARS)
  signal.throwIfAborted()
  child.refuseFailedStart()
  return errorText.trim() || undefined
}

const MAX_FAULT_CHARS = 2000

/**
 * Does what `filesWith` does, for a regular expression. Binary files, and those above `MAX_RIPGREP_FILE_BYTES`, are
 * left out.
 */
export function filesMatching(
  ripgrep: string,
  query: RegexQuery,
  ripgrepQuery: RipgrepQuery,
): AsyncGenerator<readonly Buffer[]> {
  const options = ['--files-with-matches', '--null', '--hidden', '--no-ignore', '--no-follow', '--no-messages']
  const bounds = [`--max-filesize=${MAX_RIPGREP_FILE_BYTES}`, '--sort=path']
  const command = [ripgrep, ...matchOptions(query), ...options, ...bounds, ...fileOptions(query), '--', './']
  return pathsFrom(command, patternInput(query), ripgrepQuery)
}

export type ContextLines = { readonly before: number; readonly after: number; readonly mostPerFile?: number }

/**
 * Has ripgrep match files that are open already, by their descriptors: what they are is not decided by a name again.
 * Yields its JSON messages, a line each; undefined for one that is too long.
 */
export async function* matchesIn(
  ripgrep: string,
  query: RegexQuery,
  { before, after, mostPerFile }: ContextLines,
  descriptors: readonly number[],
  signal: AbortSignal,
): AsyncGenerator<string | undefined> {
  const context = [`--before-context=${before}`, `--after-context=${after}`]
  const most = mostPerFile === undefined ? [] : [`--max-count=${mostPerFile}`]
  const paths = descriptors.map((_, at) => descriptorPath(at))
  // One thread: the files then come in the order of the arguments.
  const options = [...matchOptions(query), '--json', '--threads=1', ...context, ...most]
  const child = spawnLimited([ripgrep, ...options, '--', ...paths], patternInput(query), { signal, descriptors })
  try {
    yield* linesIn(child.stdout)
    child.refuseFailedStart()
  } finally {
    child.kill('SIGKILL')
  }
}

/** The path at which the program finds the descriptor with that index in the list. */
export const descriptorPath = (index: number) => `/proc/self/fd/${index + 3}`

/** A match of a longer line, as JSON, is not looked at. */
const MAX_MESSAGE_CHARS = 1024 * 1024

async function* linesIn(output: Readable): AsyncGenerator<string | undefined> {
  let line: string | undefined = ''
  for await (const chunk of output.setEncoding('utf8')) {
    const [first = '', ...others] = String(chunk).split('\n')
    line = joinLine(line, first)
    for (const next of others) {
      yield line
      line = next
    }
  }
}

const joinLine = (line: string | undefined, more: string) =>
  line === undefined || line.length + more.length > MAX_MESSAGE_CHARS ? undefined : line + more

/** Yields the larger files, in any order. */
export function largeFiles(query: RipgrepQuery): AsyncGenerator<readonly Buffer[]> {
  const size = `+${MAX_RIPGREP_FILE_BYTES}c`
  return pathsFrom(['find', './', '-type', 'f', '-size', size, '-print0'], undefined, query)
}

async function* pathsFrom(
  command: readonly string[],
  input: Buffer | undefined,
  { directory, signal, onCutShort }: RipgrepQuery,
): AsyncGenerator<readonly Buffer[]> {
  const child = spawnLimited(command, input, { signal, directory: within(directory, '.') })
  const exiting = once(child, 'exit').catch(() => [null])
  try {
    yield* pathsIn(child.stdout)
    const [code] = await exiting
    child.refuseFailedStart()
    // 1: nothing found; 2: something could not be read; from 126 on: the shell could not start it.
    if (typeof code !== 'number' || code > MAX_EXIT_CODE) onCutShort()
  } finally {
    child.kill('SIGKILL')
  }
}

const MAX_EXIT_CODE = 2

type Spawning = {
  readonly signal: AbortSignal
  readonly directory?: string
  readonly errors?: 'pipe'
  /** Passed on from descriptor 3. */
  readonly descriptors?: readonly number[]
}

/** Bounds the memory of the process, and kills it when the signal is aborted. */
function spawnLimited(
  command: readonly string[],
  input: Buffer | undefined,
  { signal, directory = '/', errors, descriptors = [] }: Spawning,
) {
  const child = startProcess('/bin/sh', ['-c', `ulimit -v ${MAX_MEMORY_KIB}; exec "$@"`, 'sh', ...command], {
    cwd: directory,
    env: HostEnvironment.plain,
    stdio: ['pipe', 'pipe', errors ?? 'ignore', ...descriptors],
    signal,
    killSignal: 'SIGKILL',
  })
  let failedStart: Error | undefined
  // An abort ends its output, and that is all there is to know of it.
  child.on('error', (error) => {
    if (!signal.aborted) failedStart = error
  })
  // oxlint-disable-next-line typescript/no-non-null-assertion -- both are pipes, by `stdio`
  const [stdin, stdout] = [child.stdin!, child.stdout!]
  stdin.on('error', () => {}).end(input)
  /** Throws if no process started, and so nothing was searched: its empty output is not its result. */
  const refuseFailedStart = () => {
    if (failedStart) throw failedStart
  }
  return Object.assign(child, { stdin, stdout, refuseFailedStart })
}

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
