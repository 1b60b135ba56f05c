/** Starts the bash of a session: with the saved state, or without it if the state prevents a bash from starting. */
import type { BashProcess } from './bash-process.ts'
import type { Report } from './bash-report.ts'
import { RESTORED, STATE_UNUSABLE } from './command-result.ts'
import type { SessionState } from './session-state.ts'
import { startBash, type BashPlan, type StartedBash } from './start-bash.ts'

export type BashStarterOptions = {
  readonly plan: BashPlan
  readonly state: SessionState
  /** True if a note should say that the state was restored. */
  readonly tellsRestored: boolean
  /** Returns true if the session was ended meanwhile. */
  readonly isEnded: () => boolean
  /** Called with each started bash; with undefined if the start failed. */
  readonly onBash: (bash: BashProcess | undefined) => void
}

export class BashStarter {
  readonly #options: BashStarterOptions
  /** Aborted to end a bash that is being started. */
  #starting: AbortController | undefined

  constructor(options: BashStarterOptions) {
    this.#options = options
  }

  /** Ends a bash that is being started. */
  abort(): void {
    this.#starting?.abort()
  }

  /** Throws if no bash could be started; `notes` are for the next result. */
  async start(): Promise<{ bash: BashProcess; report: Report; notes: string[] }> {
    const notes: string[] = []
    const { bash, report } = (await this.#startRestored(notes)) ?? (await this.#startWith(''))
    if (!report) throw new Error(`The shell did not start: ${await bash.complaint()}`)
    this.#options.state.markRestored()
    return { bash, report, notes }
  }

  /** Returns undefined if there is no state. A state that prevents a shell from starting is discarded. */
  async #startRestored(notes: string[]): Promise<StartedBash | undefined> {
    const { state, tellsRestored, isEnded } = this.#options
    const { script, isWhole } = await state.restore()
    if (!script) return undefined
    const restoredBash = await this.#startWith(script)
    if (restoredBash.report && isWhole && tellsRestored) notes.push(RESTORED)
    if (restoredBash.report || isEnded()) return restoredBash
    const bare = await this.#startWith('')
    if (!bare.report) return restoredBash
    await state.forget()
    notes.push(STATE_UNUSABLE)
    return bare
  }

  async #startWith(script: string): Promise<StartedBash> {
    const starting = (this.#starting = new AbortController())
    try {
      const startedBash = await startBash(this.#options.plan, script, starting.signal)
      this.#options.onBash(startedBash.report && startedBash.bash)
      return startedBash
    } finally {
      this.#starting = undefined
    }
  }
}
