/** What of a session outlives its bash: when it is saved, and what brings it back. */
import type { BashProcess } from './bash-process.ts'
import { restoreScript } from './bash-script.ts'
import type { ShellFiles } from './shell-files.ts'

const SAVE_AFTER_MS = 2000

export class SessionState {
  readonly #files: ShellFiles
  #timer: NodeJS.Timeout | undefined
  #saved: Buffer | undefined
  /** Whether `set` and `shopt` options come back too: not after a shell's end, of which one may be the cause (`-e`). */
  #withOptions = true

  constructor(files: ShellFiles) {
    this.#files = files
  }

  /** Lines for a new bash, none when nothing is kept. `isWhole`: options included. */
  async restore(): Promise<{ script: string; isWhole: boolean }> {
    if (!(await this.#files.hasState())) return { script: '', isWhole: false }
    const withOptions = this.#withOptions
    return { script: restoreScript(this.#files.statePath, { withOptions }), isWhole: withOptions }
  }

  /** It has come back: from now on the options are the new shell's own. */
  markRestored(): void {
    this.#withOptions = true
  }

  leaveOutOptions(): void {
    this.#withOptions = false
  }

  saveSoon(bash: () => BashProcess | undefined): void {
    const save = () => {
      this.#timer = undefined
      // Tried again after the next command and at the end of the shell.
      this.save(bash()).catch(() => {})
    }
    this.#timer ??= setTimeout(save, SAVE_AFTER_MS).unref()
  }

  async save(bash: BashProcess | undefined): Promise<void> {
    const state = bash?.savedState
    if (!state || state === this.#saved) return
    await this.#files.saveState(state)
    this.#saved = state
  }

  /** No save is to come any more but by `save`. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async forget(): Promise<void> {
    this.stop()
    await this.#files.forgetState()
  }
}
