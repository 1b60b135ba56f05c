/**
 * A small process that watches the server: it freezes the processes of its conversations when no renewal of the lease arrives in
 * time, also because the server itself was stopped, continues them after a renewal, and kills them when the server has died.
 * It cannot do so while the whole machine is paused.
 */
import { readFileSync } from 'node:fs'
import { sep } from 'node:path'
import { HostEnvironment, startProcess, type ChildProcess } from '../../lib/start-process.ts'
import type { Lease } from '../../storage/lease/lease.ts'
import { markOfStateIn } from '../processes/marked-processes.ts'
import { GUARD_SCRIPT } from './guard-script.ts'

export type ProcessGuardOptions = {
  readonly lease: Lease
  /** The directory that contains those of all shells, without links. */
  readonly directory: string
  /** Aborted when another instance may have taken over: everything is killed. */
  readonly takenOver: AbortSignal
  /** Called when the guard has ended by itself. It is started again. */
  readonly onFault: (error: unknown) => void
}

/** Starts the guard. The processes continue without one if it is disposed of. */
export class ProcessGuard implements AsyncDisposable {
  readonly #options: ProcessGuardOptions
  #child: ChildProcess
  /** The time when the last renewal ends, in hundredths of a second of the machine. */
  #until = 0
  #isEnded = false

  constructor(options: ProcessGuardOptions) {
    this.#options = options
    this.#child = this.#start()
    options.lease.onRenewed((leftMs) => {
      this.#until = uptime() + Math.floor(leftMs / 10)
      this.#tell(`until ${this.#until}`)
    })
    options.takenOver.addEventListener('abort', () => this.#tell('kill'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true
    const exiting = new Promise((resolve) => this.#child.once('exit', resolve))
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#tell('end')
    await exiting
  }

  #start(): ChildProcess {
    const mark = markOfStateIn(this.#options.directory + sep)
    const args = ['--norc', '-c', GUARD_SCRIPT, 'agent-server-guard', String(process.pid), mark]
    const env = HostEnvironment.plain
    // The guard has its own group: what stops or ends the group of the server leaves it running.
    const child = startProcess('bash', args, { cwd: '/', env, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    child.stdin?.on('error', () => {}) // its end is reported below
    const restart = (why: string) => {
      if (this.#isEnded) return
      this.#options.onFault(new Error(`The guard of the processes ended (${why}). It is started again.`))
      this.#child = this.#start()
      this.#tell(`until ${this.#until}`)
    }
    child.once('exit', (code, signal) => restart(signal ?? `exit code ${code}`))
    child.unref()
    return child
  }

  #tell(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }
}

/**
 * Returns the time since the machine was started, in hundredths of a second. Read it before what is added to it: a pause in
 * between then makes the sum too small, which freezes too early, not too late.
 */
function uptime(): number {
  return Math.round(Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 100)
}
