/**
 * The commands that the agent of one conversation runs in the background: each in its own shell, which begins as the
 * session stands. They are known until the server stops, which ends them; nothing of them is stored.
 */
import { randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { completeUtf8Length } from '../../lib/text/utf8-border.ts'
import { commandMark } from '../../shell/processes/marked-processes.ts'
import type { ShellResult, OutputFiles, Shells } from '../../shell/shell.ts'
import { BACKGROUND_DIRECTORY } from '../../shell/output/background-output.ts'

/** Commands that may run at the same time. */
const MAX_RUNNING = 16

/** Commands that are known; the oldest that have ended are forgotten first. */
const MAX_KNOWN = 100

/** Bytes of each stream that are kept. */
const MAX_STREAM_BYTES = 20 * 1024 * 1024

/** Bytes of a stream that one call reads. */
const MAX_READ_BYTES = 30_000

export type BackgroundShellsDeps = {
  readonly shells: Pick<Shells, 'fork' | 'endFork'>
  /** The conversation's own, among the server's files; its outputs can be read by the agent. */
  readonly stateDirectory: string
}

type StreamName = 'stdout' | 'stderr'

type Background = {
  readonly files: Readonly<Record<StreamName, string>>
  readonly abort: AbortController
  /** What of each stream was read already. */
  readonly read: Record<StreamName, number>
  /** Undefined while it runs. */
  end: BackgroundEnd | undefined
  ended: Promise<void>
}

/** `killed`: by `kill`, or because the conversation was closed. */
export type BackgroundEnd =
  | { readonly status: 'completed'; readonly exitCode: number | null }
  | { readonly status: 'killed' }
  | { readonly status: 'failed'; readonly why: string }

export type BackgroundOutput = Readonly<Record<StreamName, string>> & {
  readonly end: BackgroundEnd | undefined
  /** There is more that was not read now. */
  readonly hasMore: boolean
}

/** What cannot be done with a background command, in words for the model. */
export class BackgroundFault extends Error {}

export class BackgroundShells {
  readonly #deps: BackgroundShellsDeps
  readonly #shells = new Map<string, Background>()

  constructor(deps: BackgroundShellsDeps) {
    this.#deps = deps
  }

  /** Resolves when the command begins. Throws a `BackgroundFault`, or what the shells say. */
  async start(command: string, sessionId: string) {
    const running = this.#shells.values().filter(({ end }) => !end)
    if ([...running].length >= MAX_RUNNING)
      throw new BackgroundFault(`${MAX_RUNNING} commands run in the background already; end one with KillShell.`)
    const id = randomUUID()
    const directory = join(this.#deps.stateDirectory, 'outputs', BACKGROUND_DIRECTORY)
    await makeDirectories(directory)
    const fileOf = (stream: StreamName) => join(directory, `${id}.${stream}.log`)
    const files = { stdout: fileOf('stdout'), stderr: fileOf('stderr') }
    const shell = await this.#deps.shells.fork(sessionId, id)
    const abort = new AbortController()
    const starting = Promise.withResolvers<void>()
    const result = shell.run(command, {
      timeout: Infinity,
      signal: abort.signal,
      ownEnv: commandMark(id),
      outputs: outputsOf(files),
      onStart: () => starting.resolve(),
    })
    const background: Background = {
      files,
      abort,
      read: { stdout: 0, stderr: 0 },
      end: undefined,
      ended: Promise.resolve(),
    }
    background.ended = follow(background, result)
    this.#remember(id, background)
    await Promise.race([starting.promise, background.ended])
    return { id, cwd: shell.cwd, files }
  }

  /** Returns what has come since the last call. Throws a `BackgroundFault` for an unknown id. */
  async read(id: string): Promise<BackgroundOutput> {
    const background = this.#find(id)
    // This precedes the reading of the output: otherwise later output would be missing from the last answer.
    const { end } = background
    const [stdout, stderr] = [await readNew(background, 'stdout', end), await readNew(background, 'stderr', end)]
    return { stdout: stdout.text, stderr: stderr.text, end, hasMore: stdout.hasMore || stderr.hasMore }
  }

  /** Ends a command with all of its processes; returns whether it ran. Throws a `BackgroundFault` for an unknown id. */
  async kill(id: string): Promise<boolean> {
    const background = this.#find(id)
    const isRunning = !background.end
    background.abort.abort()
    await this.#deps.shells.endFork(id)
    await background.ended
    if (isRunning) background.end = { status: 'killed' }
    return isRunning
  }

  #find(id: string): Background {
    const knownShell = this.#shells.get(id)
    if (knownShell) return knownShell
    const ids = [...this.#shells.keys()].join(', ') || 'none'
    throw new BackgroundFault(
      `There is no background command ${id}; those known are: ${ids}. A restart of the server ends and forgets all of them.`,
    )
  }

  #remember(id: string, background: Background): void {
    this.#shells.set(id, background)
    for (const [oldest, { end }] of this.#shells) {
      if (this.#shells.size <= MAX_KNOWN) return
      if (end) this.#shells.delete(oldest)
    }
  }
}

/** Never rejects. */
async function follow(background: Background, result: Promise<ShellResult>): Promise<void> {
  try {
    background.end = endOf(await result)
  } catch (error) {
    background.end = { status: 'failed', why: error instanceof Error ? error.message : String(error) }
  }
}

const outputsOf = (files: Readonly<Record<StreamName, string>>): OutputFiles => ({
  stdout: { path: files.stdout, shownPath: files.stdout },
  stderr: { path: files.stderr, shownPath: files.stderr },
  limit: MAX_STREAM_BYTES,
  whenFull: 'drop',
  onWritten: () => {},
  onClosed: () => {},
})

function endOf({ exitCode, interrupted, note }: ShellResult): BackgroundEnd {
  if (interrupted) return { status: 'killed' }
  return exitCode === null
    ? { status: 'failed', why: note ?? 'The command was not started.' }
    : { status: 'completed', exitCode }
}

async function readNew({ files, read }: Background, stream: StreamName, end: BackgroundEnd | undefined) {
  const bytes = await readAt(files[stream], read[stream])
  const shownBytes = bytes.subarray(0, MAX_READ_BYTES)
  const hasMore = bytes.length > shownBytes.length
  // A character that has come in part comes whole with the next call.
  const length = end && !hasMore ? shownBytes.length : completeUtf8Length(shownBytes)
  read[stream] += length
  return { text: shownBytes.subarray(0, length).toString(), hasMore }
}

/** One byte more than is shown at a time, to know whether there is more. */
async function readAt(path: string, position: number): Promise<Buffer> {
  try {
    await using file = await open(path)
    const buffer = Buffer.alloc(MAX_READ_BYTES + 1)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
    return buffer.subarray(0, bytesRead)
  } catch {
    return Buffer.alloc(0) // nothing has been written yet
  }
}
