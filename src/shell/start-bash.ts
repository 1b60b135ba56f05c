/** Starts the bash of a session: where it stands, in which sandbox, with which variables, set up and with its state back. */
import { mkdir } from 'node:fs/promises'
import { BashProcess } from './bash-process.ts'
import type { Report } from './bash-report.ts'
import { BASH_ARGV, beginScript, setUpScript } from './bash-script.ts'
import { shellMark } from './processes/marked-processes.ts'
import type { Launch, ShellLauncher, ShellNetwork } from '../sandbox/launch.ts'

export type BashPlan = {
  readonly sessionId: string
  readonly conversationId: string
  readonly workdir: string
  /** The session's own directory for pipes, the command and the saved state. */
  readonly stateDir: string
  /** Full and background outputs, where the agent can read them. */
  readonly outputDir: string
  /** See `LaunchOptions`. */
  readonly privateDir: string
  readonly env: Readonly<Record<string, string>>
  readonly launcher: ShellLauncher
  /** Asked for at each start of a bash. */
  readonly network: () => ShellNetwork
  /** Of the launch, and then of the shell until its first report. */
  readonly startMs: number
}

export type StartedBash = {
  readonly bash: BashProcess
  /** Its first; nothing when it has ended instead, or did not answer and was ended. */
  readonly report: Report | undefined
}

/**
 * `restoreScript` brings a saved state back. Rejects when there can be no sandbox, a file system does not answer, or
 * `signal` was aborted before the shell's process was there; from then on it ends that.
 */
export async function startBash(plan: BashPlan, restoreScript: string, signal: AbortSignal): Promise<StartedBash> {
  const { bash, fixed, stale } = await launchBash(plan, signal)
  const kill = () => void bash.kill()
  const timer = setTimeout(kill, plan.startMs)
  signal.addEventListener('abort', kill)
  if (signal.aborted) kill()
  const report = await bash.send(beginScript(plan.workdir) + restoreScript + setUpScript(plan.workdir, fixed, stale))
  signal.removeEventListener('abort', kill)
  clearTimeout(timer)
  return { bash, report }
}

/** `fixed`: variables that it has whatever its saved state says. */
async function launchBash(
  plan: BashPlan,
  signal: AbortSignal,
): Promise<{ bash: BashProcess; fixed: Readonly<Record<string, string>>; stale: Launch['stale'] }> {
  const { outputDir, stateDir, env } = plan
  await mkdir(outputDir, { recursive: true })
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  await using launch = await launchInTime(plan, signal)
  const fixed = { ...launch.env, ...shellMark(plan.conversationId, plan.sessionId, stateDir) }
  const bash = new BashProcess(launch, { ...env, ...fixed })
  if (bash.launchedPid !== undefined) await launch.onSpawned?.(bash.launchedPid)
  return { bash, fixed, stale: launch.stale }
}

/** A launch looks at files in the workdir, whose file system may not answer. What comes too late is given up. */
async function launchInTime(plan: BashPlan, signal: AbortSignal): Promise<Launch> {
  const { workdir, outputDir, stateDir, privateDir, launcher } = plan
  const { promise: givenUp, reject } = Promise.withResolvers<never>()
  givenUp.catch(() => {}) // who races it is told
  const onAbort = () => reject(new Error('The shell was not started: its session has ended.'))
  const onTimeout = () =>
    reject(new Error('The shell was not started: the file system of the workdir does not answer.'))
  const timer = setTimeout(onTimeout, plan.startMs)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  const places = { workdir, visible: [stateDir, outputDir], privateDir }
  const launching = launcher.launch(BASH_ARGV, { ...places, network: plan.network() })
  try {
    return await Promise.race([launching, givenUp])
  } catch (error) {
    void launching.then((launch) => launch[Symbol.asyncDispose]()).catch(() => {}) // it failed, and that is told
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
