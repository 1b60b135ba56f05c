/** Starts the bash of a session: where it stands, behind which wall, with which variables, set up and with its state back. */
import { mkdirSync } from 'node:fs'
import { BashProcess } from './bash-process.ts'
import type { Report } from './bash-report.ts'
import { BASH_ARGV, beginScript, exportScript, setUpScript, unsetStaleScript } from './bash-script.ts'
import { killShell } from './interrupt.ts'
import { shellMark } from './marked-processes.ts'
import type { SessionState } from './session-state.ts'
import type { Launch, ShellLauncher, ShellNetwork } from './shell.ts'

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
}

const START_TIMEOUT_MS = 10_000

export type StartedBash = {
  readonly bash: BashProcess
  /** Its first; nothing when it has ended instead, or did not answer and was ended. */
  readonly report: Report | undefined
  /** Whether its state came back, options included. */
  readonly isRestored: boolean
}

/** `onLaunch` is called at once, with what may have to be ended before it has started. Throws when there can be no wall. */
export async function startBash(
  plan: BashPlan,
  state: SessionState,
  onLaunch: (bash: BashProcess) => void,
): Promise<StartedBash> {
  const { bash, fixed, stale } = await launchBash(plan, onLaunch)
  const { script, isWhole } = await state.restore()
  const timer = setTimeout(() => killShell(bash), START_TIMEOUT_MS)
  const variables = unsetStaleScript(stale) + exportScript(fixed)
  const report = await bash.send(beginScript(plan.workdir) + script + variables + setUpScript(plan.workdir))
  clearTimeout(timer)
  return { bash, report, isRestored: isWhole }
}

/** `fixed`: variables that it has whatever its saved state says. */
async function launchBash(
  plan: BashPlan,
  onLaunch: (bash: BashProcess) => void,
): Promise<{ bash: BashProcess; fixed: Readonly<Record<string, string>>; stale: Launch['stale'] }> {
  const { workdir, outputDir, stateDir, privateDir, launcher, env } = plan
  // A workdir that was deleted is made again: no shell could start without it.
  for (const directory of [workdir, outputDir]) mkdirSync(directory, { recursive: true })
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const places = { workdir, visible: [stateDir, outputDir], privateDir }
  await using launch = await launcher.launch(BASH_ARGV, { ...places, network: plan.network() })
  const fixed = { ...launch.env, ...shellMark(plan.conversationId, plan.sessionId, stateDir) }
  const bash = new BashProcess(launch, { ...env, ...fixed })
  onLaunch(bash)
  if (bash.launchedPid !== undefined) await launch.onSpawned?.(bash.launchedPid)
  return { bash, fixed, stale: launch.stale }
}
