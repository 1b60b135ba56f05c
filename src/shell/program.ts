/**
 * A program that runs in the sandbox of a conversation in addition to its shells, and that the server talks to over its
 * standard streams.
 */
import type { Readable, Writable } from 'node:stream'
import { PassThrough, pipeline } from 'node:stream'
import { makeDirectories } from '../files/make-directories.ts'
import { afterRunning, settlesWithin } from '../lib/bounded-wait.ts'
import { type HostEnvironment, startProcess, type ChildProcess } from '../lib/start-process.ts'
import type { Lease } from '../storage/lease/lease.ts'
import type { Launch, ShellLauncher, ShellNetwork } from '../sandbox/launch.ts'
import { endMarkedProcesses, endTrees, programId, shellMark } from './processes/marked-processes.ts'
import { findProcess } from './processes/process-table.ts'
import { programArgv, programScript, SCRIPT_STDIO_INDEX } from './program-script.ts'

/** The part that is kept of its standard error: more than is shown, as a secret at the cut would not be redacted. */
const MAX_COMPLAINT_CHARS = 64 * 1024
/** The time for a program that was asked to end by closing its input. */
const END_GRACE_MS = 500
/** The last output of a process that has exited; its children may hold the pipe forever. */
const LAST_OUTPUT_MS = 200

export type ProgramOptions = {
  /** Unique among the running programs of the conversation. */
  readonly name: string
  readonly argv: readonly string[]
  /** Its variables in addition to those of a shell. Only the program itself gets them. */
  readonly variables: Readonly<Record<string, string>>
}

export type ProgramPlan = {
  readonly conversationId: string
  readonly workdir: string
  readonly additionalDirectories?: readonly string[] | undefined
  readonly stateDir: string
  readonly privateDir: string
  readonly launcher: ShellLauncher
  readonly network: () => ShellNetwork
  /** What it inherits, and what starts it as well. */
  readonly env: HostEnvironment
  readonly lease?: Lease | undefined
}

/** Why it ended, as a clause. */
export type ProgramEnd = { readonly reason: string }

/**
 * Rejects if no sandbox is possible, or no process can have this command and these variables. A program that cannot be
 * started ends at once.
 */
export async function startProgram(plan: ProgramPlan, { name, argv, variables }: ProgramOptions): Promise<Program> {
  const { conversationId, workdir, additionalDirectories, stateDir, privateDir, launcher, network } = plan
  const id = programId(name)
  if (plan.lease?.isHeld === false) await plan.lease.whenHeld()
  await makeDirectories(stateDir, 0o700)
  const places = { workdir, additionalDirectories, visible: [], privateDir }
  await using launch = await launcher.launch(programArgv(workdir), { ...places, network: network() })
  const mark = shellMark(conversationId, id, `${stateDir}/${id}`)
  // Its own variables come first: it can neither hide from the server nor leave the places of its conversation.
  const script = programScript(argv, { ...variables, ...launch.env, ...mark })
  const program = new Program(launch, plan.env.marked(mark), () => endMarkedProcesses(conversationId, id))
  try {
    if (program.pid !== undefined) await launch.onSpawned?.(program.pid)
    // It may have ended during the start.
    if (plan.lease?.isHeld === false) await plan.lease.whenHeld()
  } catch (error) {
    await program.kill()
    throw error
  }
  program.begin(script)
  return program
}

export class Program {
  readonly #child: ChildProcess
  readonly #endMarked: () => Promise<void>
  readonly #ended = Promise.withResolvers<ProgramEnd>()
  readonly stdin: Writable
  readonly stdout: Readable
  #complaint = ''
  #ending: Promise<void> | undefined

  constructor(launch: Launch, env: HostEnvironment, endMarked: () => Promise<void>) {
    const [file = '', ...args] = launch.argv
    this.#endMarked = endMarked
    this.#child = startProcess(file, args, {
      cwd: launch.cwd,
      env,
      detached: true,
      // The fourth is for its script: descriptors of the launch follow it.
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...launch.descriptors, ...(launch.onChannel ? (['ipc'] as const) : [])],
    })
    launch.onChannel?.(this.#child)
    // oxlint-disable-next-line typescript/no-non-null-assertion -- `stdio` has pipes there
    const [stdin, stdout] = [this.#child.stdin!, this.#child.stdout!]
    // Node drops what nobody has read of the stdout of a child that has exited.
    ;[this.stdin, this.stdout] = [stdin, pipeline(stdout, new PassThrough(), () => {})]
    this.stdin.on('error', () => {}) // `ended` reports the end
    this.stdout.on('error', () => {})
    this.#child.stderr
      ?.on('error', () => {})
      .setEncoding('utf8')
      .on('data', (text: string) => {
        this.#complaint = (this.#complaint + text).slice(-MAX_COMPLAINT_CHARS)
      })
    this.#child.once('error', (error) => this.#settle(`it could not be started: ${error.message}`))
    this.#child.once('exit', (code, signal) => this.#onExit(code, signal))
    if (launch.onEnded) void this.ended.then(launch.onEnded)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Starts the program itself, by what `programScript` returned. Call it once. */
  begin(script: string): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types do not know that a pipe at this index can be written
    const pipe = this.#child.stdio[SCRIPT_STDIO_INDEX] as Writable
    // Destroyed after the last byte: nothing is read from it, so it would never close by itself.
    pipe.on('error', () => {}).end(script, () => pipe.destroy())
  }

  /** Resolves when the process has exited; what it started may still run until `end`. */
  get ended(): Promise<ProgramEnd> {
    return this.#ended.promise
  }

  /** The last of its standard error. */
  get complaint(): string {
    return this.#complaint.trim()
  }

  /** Closes its input and, soon after that, kills it with everything it started. Idempotent. */
  end(): Promise<void> {
    return (this.#ending ??= this.#end())
  }

  async #end(): Promise<void> {
    this.stdin.end()
    await settlesWithin(END_GRACE_MS, this.ended)
    await this.kill()
  }

  async kill(): Promise<void> {
    const { pid } = this
    const startedProcess = pid === undefined ? undefined : findProcess(pid)
    if (startedProcess && this.#child.exitCode === null && this.#child.signalCode === null)
      await endTrees([startedProcess])
    await this.#endMarked()
    for (const stream of this.#child.stdio) stream?.destroy()
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    const settle = () => this.#settle(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`)
    const cancel = afterRunning(LAST_OUTPUT_MS, settle)
    this.#child.once('close', () => {
      cancel()
      settle()
    })
  }

  #settle(reason: string): void {
    this.#ended.resolve({ reason })
  }
}
