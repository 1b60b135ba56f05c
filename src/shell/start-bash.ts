/** Starts the bash of a session: with its directory, sandbox, variables, set-up and restored state. */
import { afterRunning } from '../lib/bounded-wait.ts'
import { makeDirectories } from '../files/make-directories.ts'
import type { HostEnvironment } from '../lib/start-process.ts'
import { BashProcess } from './bash-process.ts'
import type { Report } from './bash-report.ts'
import { BASH_ARGV, beginScript, setUpScript } from './bash-script.ts'
import { shellMark } from './processes/marked-processes.ts'
import type { Launch, ShellLauncher, ShellNetwork } from '../sandbox/launch.ts'

export type BashPlan = {
  readonly sessionId: string
  readonly conversationId: string
  readonly workdir: string
  readonly additionalDirectories?: readonly string[] | undefined
  /** The session's directory for pipes, the command and the saved state. */
  readonly stateDir: string
  /** The place of its saved state; it may be `stateDir`. */
  readonly keptDir: string
  /** Complete and background outputs, readable by the agent. */
  readonly outputDir: string
  /** See `LaunchOptions`. */
  readonly privateDir: string
  readonly env: HostEnvironment
  readonly launcher: ShellLauncher
  /** Called at each start of a bash. */
  readonly network: () => ShellNetwork
  /** Time limit for the launch, and then for the shell's first report. */
  readonly startMs: number
}

export type StartedBash = {
  readonly bash: BashProcess
  /** Its first report; undefined if it ended, or did not respond and was ended. */
  readonly report: Report | undefined
}

/**
 * `restoreScript` restores a saved state. Rejects if a sandbox is not possible, a file system does not respond, or
 * `signal` was aborted before the shell's process existed; later, the signal ends the process.
 */
export async function startBash(plan: BashPlan, restoreScript: string, signal: AbortSignal): Promise<StartedBash> {
  const { bash, fixed, stale } = await launchBash(plan, signal)
  const kill = () => void bash.kill()
  const cancel = afterRunning(plan.startMs, kill)
  signal.addEventListener('abort', kill)
  if (signal.aborted) kill()
  const report = await bash.send(beginScript(plan.workdir) + restoreScript + setUpScript(plan.workdir, fixed, stale))
  signal.removeEventListener('abort', kill)
  cancel()
  return { bash, report }
}

/** `fixed`: variables that override the saved state. */
async function launchBash(
  plan: BashPlan,
  signal: AbortSignal,
): Promise<{ bash: BashProcess; fixed: Readonly<Record<string, string>>; stale: Launch['stale'] }> {
  const { outputDir, stateDir, keptDir, env } = plan
  await makeDirectories(outputDir)
  await makeDirectories(stateDir, 0o700)
  if (keptDir !== stateDir) await makeDirectories(keptDir, 0o700)
  await using launch = await launchInTime(plan, signal)
  const mark = shellMark(plan.conversationId, plan.sessionId, stateDir)
  const fixedVariables = { ...launch.env, ...mark }
  const bash = new BashProcess(launch, env.marked(mark))
  if (bash.launchedPid !== undefined) await launch.onSpawned?.(bash.launchedPid)
  return { bash, fixed: fixedVariables, stale: launch.stale }
}

/** A launch reads files in the workdir, whose file system may not respond. A late result is discarded. */
async function launchInTime(plan: BashPlan, signal: AbortSignal): Promise<Launch> {
  const { workdir, additionalDirectories, outputDir, stateDir, keptDir, privateDir, launcher } = plan
  const { promise: givenUp, reject } = Promise.withResolvers<never>()
  givenUp.catch(() => {}) // the race reports it
  const onAbort = () => reject(new Error('The shell was not started: its session has ended.'))
  const onTimeout = () =>
    reject(new Error('The shell was not started: the file system of the workdir does not answer.'))
  const cancel = afterRunning(plan.startMs, onTimeout)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  const places = { workdir, additionalDirectories, visible: [...new Set([stateDir, keptDir, outputDir])], privateDir }
  const launching = launcher.launch(BASH_ARGV, { ...places, network: plan.network() })
  try {
    return await Promise.race([launching, givenUp])
  } catch (error) {
    void launching.then((launch) => launch[Symbol.asyncDispose]()).catch(() => {}) // the failure is already reported
    throw error
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}
