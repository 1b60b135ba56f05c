/** The state of a session that outlives its bash: saves and restores it. */
import type { BashProcess } from './bash-process.ts'
import { restoreScript } from './bash-script.ts'
import type { ShellFiles } from './shell-files.ts'

const SAVE_AFTER_MS = 2000

export class SessionState {
  readonly #files: ShellFiles
  #timer: NodeJS.Timeout | undefined
  #saved: Buffer | undefined
  /**
   * True if `set` and `shopt` options are restored, too: not after the shell died, which an option may have caused
   * (`-e`).
   */
  #withOptions = true

  constructor(files: ShellFiles) {
    this.#files = files
  }

  /** Returns lines for a new bash, none if no state is saved. `isWhole`: including options. */
  async restore(): Promise<{ script: string; isWhole: boolean }> {
    if (!(await this.#files.hasState())) return { script: '', isWhole: false }
    const withOptions = this.#withOptions
    return { script: restoreScript(this.#files.statePath, { withOptions }), isWhole: withOptions }
  }

  /** Marks the state as restored: from now on the options are the new shell's own. */
  markRestored(): void {
    this.#withOptions = true
  }

  leaveOutOptions(): void {
    this.#withOptions = false
  }

  saveSoon(bash: () => BashProcess | undefined): void {
    const save = () => {
      this.#timer = undefined
      // Saving is retried after the next command and at the end of the shell.
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

  /** Resolves when the state after the last finished command is saved; to false if the shell did not tell it. */
  async saveLast(bash: BashProcess | undefined): Promise<boolean> {
    // The state follows the report that ended the command, so another report comes after the state.
    await bash?.send('')
    await this.save(bash)
    return bash?.hadState !== false
  }

  /** Ends the timer: `save` alone saves the state afterwards. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async forget(): Promise<void> {
    this.stop()
    await this.#files.forgetState()
  }
}
