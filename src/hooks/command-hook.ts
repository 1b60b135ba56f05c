/**
 * Runs a command hook: in its own shell in the conversation's sandbox, which knows nothing of the agent's session
 * and ends with everything that the hook started.
 */
import { randomUUID } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import type { CommandHook } from '../contract/hooks/hooks.ts'
import { orAborted } from '../lib/bounded-wait.ts'
import { codeOf } from '../lib/error-code.ts'
import { InputPipe } from '../shell/input-pipe.ts'
import { BACKGROUND_DIRECTORY } from '../shell/output/background-output.ts'
import { commandMark } from '../shell/processes/marked-processes.ts'
import type { ShellResult, OutputFiles, Shells } from '../shell/shell.ts'
import { waitForDescriptors } from '../shell/wait-for-descriptors.ts'
import type { HookEnd } from './hook-answer.ts'
import { readAnswer, UnreadableAnswer } from './hook-answer.ts'

export type CommandHookDeps = {
  readonly shells: () => Pick<Shells, 'fork' | 'endFork'>
  readonly workdir: () => string
  /** The directory in which the server keeps the outputs of commands. */
  readonly outputDirectory: string
  /** Ends the processes of a command that left the process tree of its shell; undefined in a sandbox. */
  readonly endLeft?: ((commandId: string) => Promise<void>) | undefined
}

/** Bytes of each output stream; a hook that writes more is ended. */
const MAX_HOOK_OUTPUT_BYTES = 1024 ** 2

/** Characters of standard error that are kept. */
const MAX_REASON_CHARS = 10_000

const [BLOCK, CANNOT_EXECUTE, NOT_FOUND, SIGNALLED] = [2, 126, 127, 128]

/** Rejects with the signal's reason after the hook and its processes have ended. */
export async function runCommandHook(
  deps: CommandHookDeps,
  { command }: CommandHook,
  { point, text }: { readonly point: HookPoint; readonly text: string },
  signal: AbortSignal,
): Promise<HookEnd> {
  const id = randomUUID()
  const shells = deps.shells()
  const directory = join(deps.outputDirectory, BACKGROUND_DIRECTORY)
  const files = { stdout: join(directory, `${id}.stdout.log`), stderr: join(directory, `${id}.stderr.log`) }
  try {
    await makeDirectories(directory)
    const shell = await shells.fork(undefined, id)
    const input = new InputPipe()
    input.write(text)
    input.end()
    const shellRun = shell.run(`bash -c ${quote(command)}`, {
      timeout: Infinity,
      signal: NEVER,
      input,
      outputs: outputsTo(files),
      ownEnv: { ...commandMark(id), CLAUDE_PROJECT_DIR: deps.workdir() },
    })
    const result = await orAborted(shellRun, signal)
    return await endOf(point, result, files)
  } finally {
    // This also ends what the hook left running.
    await shells.endFork(id)
    await deps.endLeft?.(id)
    for (const file of Object.values(files)) await rm(file, { force: true })
  }
}

/** The shell is ended as a whole instead, which is faster and leaves nothing. */
const NEVER = new AbortController().signal

type Files = { readonly stdout: string; readonly stderr: string }

const outputsTo = ({ stdout, stderr }: Files): OutputFiles => ({
  stdout: { path: stdout, shownPath: stdout },
  stderr: { path: stderr, shownPath: stderr },
  limit: MAX_HOOK_OUTPUT_BYTES,
  whenFull: 'end',
  onWritten: () => {},
  onClosed: () => {},
})

async function endOf(point: HookPoint, result: ShellResult, files: Files): Promise<HookEnd> {
  const failure = (why: string): HookEnd => ({ kind: 'failed', why })
  const { exitCode } = result
  if (result.flooded) return failure(`it wrote more than ${MAX_HOOK_OUTPUT_BYTES} bytes`)
  if (result.exceeded) return failure(result.exceeded.message)
  if (exitCode === null) return failure(result.note ?? 'it was ended')
  const stderr = (await bytesIn(files.stderr)).toString().trim().slice(0, MAX_REASON_CHARS)
  if (exitCode === BLOCK) return { kind: 'blocked', reason: stderr }
  const errorText = stderr === '' ? '' : `: ${stderr}`
  if (exitCode === CANNOT_EXECUTE || exitCode === NOT_FOUND || exitCode > SIGNALLED)
    return failure(
      `it ${exitCode > SIGNALLED ? 'was ended by a signal' : 'could not be run'} (exit code ${exitCode})${errorText}`,
    )
  if (exitCode !== 0) return { kind: 'warned', warning: `exit code ${exitCode}${errorText}` }
  try {
    return { kind: 'answered', answer: readAnswer(point, decode(await wholeOutput(files, result))) }
  } catch (error) {
    if (error instanceof UnreadableAnswer) return failure(error.message)
    throw error
  }
}

/** A part of an answer, or nothing of it, could allow what the whole denies. Throws `UnreadableAnswer`. */
async function wholeOutput({ stdout }: Files, { outputBytes }: ShellResult): Promise<Buffer> {
  const bytes = await bytesIn(stdout)
  if (bytes.length < outputBytes.stdout)
    throw new UnreadableAnswer('its answer could not be stored: make room on the disk of the server')
  return bytes
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UnreadableAnswer('its answer is not UTF-8')
  }
}

/** Throws if there is a file that cannot be read. */
const bytesIn = (path: string): Promise<Buffer> =>
  waitForDescriptors(() =>
    readFile(path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return Buffer.alloc(0) // it wrote nothing
      throw error
    }),
  )

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
