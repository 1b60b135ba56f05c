/** Runs one command in a bash: its output, its time limit, and its background processes. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startTimeLimit } from '../storage/lease/lease.ts'
import type { BashProcess } from './bash-process.ts'
import type { Report } from './bash-report.ts'
import { commandScript, exportScript } from './bash-script.ts'
import { readSlowly } from './output/background-output.ts'
import { OutputCapture, type CommandOutputOptions, type FinishedOutput } from './output/output-capture.ts'
import { interruptCommand } from './processes/interrupt.ts'
import type { OutputFifo } from './output/output-fifo.ts'
import type { CommandOptions } from './shell.ts'
import type { OutputPipes, ShellFiles } from './shell-files.ts'
import type { BashCommandLimits } from './shell-limits.ts'

export type BashCommand = {
  readonly bash: BashProcess
  readonly files: ShellFiles
  readonly pipes: OutputPipes
  readonly command: string
  readonly options: CommandOptions
  /** The path of a pipe to read from. */
  readonly stdin: string | undefined
  readonly secrets: Readonly<Record<string, string>>
  /** Directory for the complete version of a long output, unless `options` names files. */
  readonly outputDir: string
  readonly limits: BashCommandLimits
}

/** A new background child holds the pipes for a moment, even if its own output is redirected: until it is scheduled. */
const LETTING_GO_MS = [1, 5, 15]

export type KillReason = 'timeout' | 'abort' | 'flood'

export type FinishedCommand = {
  /** Undefined if the shell ended with the command. */
  readonly report: Report | undefined
  readonly stopped: KillReason | undefined
  readonly stdout: FinishedOutput
  readonly stderr: FinishedOutput
  /** Background processes still hold the pipes, which therefore cannot be reused. */
  readonly pipesHeld: boolean
}

export async function runBashCommand(run: BashCommand): Promise<FinishedCommand> {
  const { bash, files, pipes, options } = run
  files.writeScript(run.command.replaceAll('\0', ''))
  const flood = new AbortController()
  const stdout = connectOutput('stdout', pipes.stdout, run, flood)
  const stderr = connectOutput('stderr', pipes.stderr, run, flood)
  const { stdin } = run
  const paths = { script: files.scriptPath, stdin, stdout: pipes.stdout.path, stderr: pipes.stderr.path }
  const ownEnv = { ...run.secrets, ...options.ownEnv }
  const reporting = bash.send(exportScript(options.env ?? {}) + commandScript(paths, ownEnv))
  const feeding = stdin === undefined ? undefined : options.input?.connect(stdin)
  const killReason = await stopWhenNeeded(bash, reporting, run, flood.signal)
  const report = await reporting
  options.input?.close()
  await feeding
  const pipesAre = await drain(pipes)
  pipes.stdout.endText(pipesAre)
  pipes.stderr.endText(pipesAre)
  pipes.stdout.receive(() => true)
  pipes.stderr.receive(() => true)
  return {
    report,
    stopped: killReason,
    stdout: await stdout.finish(),
    stderr: await stderr.finish(),
    pipesHeld: pipesAre === 'held',
  }
}

/** The shell has finished the command: everything that it wrote itself is in the pipes by now. */
async function drain({ stdout, stderr }: OutputPipes): Promise<'free' | 'held'> {
  for (const patience of LETTING_GO_MS) {
    const states = [stdout.drain(), stderr.drain()]
    if (!states.includes('held')) return 'free'
    await delay(patience)
  }
  return [stdout.drain(), stderr.drain()].includes('held') ? 'held' : 'free'
}

function connectOutput(
  stream: 'stdout' | 'stderr',
  pipe: OutputFifo,
  run: BashCommand,
  flood: AbortController,
): OutputCapture {
  const { onOutput, outputs } = run.options
  const output = new OutputCapture({
    keptBytes: run.limits.outputBytes,
    file: fileFor(stream, run),
    onText: onOutput && ((text, offset) => onOutput(stream, text, offset)),
    onDrain: () => pipe.resume(),
    ...(outputs && { onWritten: outputs.onWritten }),
    onFull() {
      if (outputs?.whenFull === 'drop') return readSlowly(pipe)
      flood.abort()
      return true
    },
  })
  pipe.receive((bytes) => output.write(bytes))
  return output
}

function fileFor(
  stream: 'stdout' | 'stderr',
  { options: { outputs }, outputDir, limits }: BashCommand,
): CommandOutputOptions['file'] {
  if (outputs) return { ...outputs[stream], limit: outputs.limit, from: 'first-byte' }
  const path = join(outputDir, `${stream}-${randomUUID()}.txt`)
  return { path, shownPath: path, limit: limits.fullOutputBytes, from: 'overflow' }
}

/** Resolves when the command has ended by itself (with undefined), or was ended (with the reason). */
async function stopWhenNeeded(
  bash: BashProcess,
  commandEnd: Promise<unknown>,
  { options, limits }: BashCommand,
  flood: AbortSignal,
): Promise<KillReason | undefined> {
  const reason = Promise.withResolvers<KillReason | undefined>()
  const onAbort = () => reason.resolve('abort')
  const isTimed = Number.isFinite(options.timeout)
  const cancel = isTimed
    ? startTimeLimit(options.timeout * 1000, limits.lease, () => reason.resolve('timeout'))
    : undefined
  flood.addEventListener('abort', () => reason.resolve('flood'))
  options.signal.addEventListener('abort', onAbort)
  if (options.signal.aborted) onAbort()
  void commandEnd.then(() => reason.resolve(undefined))
  try {
    const why = await reason.promise
    if (why) await interruptCommand(bash, commandEnd, limits.graceMs)
    return why
  } finally {
    cancel?.()
    options.signal.removeEventListener('abort', onAbort)
  }
}
