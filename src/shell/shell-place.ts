/** The place of the shell of a session, for people, and what its next command finds, for the gate. */
import type { Report, ShellStand } from './bash-report.ts'
import { UNKNOWN_STAND } from './bash-report.ts'
import { tellLostCwd } from './command-result.ts'

export class ShellPlace {
  /** The last directory that is known. */
  cwd: string
  stand: ShellStand

  /** The shell is new. */
  constructor(workdir: string, path: string) {
    this.cwd = workdir
    this.stand = { cwd: workdir, evaluates: [], path }
  }

  /** Takes over what the shell reports of itself; returns notes for the result. */
  take({ cwd = this.cwd, lostCwd, stand }: Report): string[] {
    this.cwd = cwd
    this.stand = stand
    return lostCwd === undefined ? [] : [tellLostCwd(lostCwd, cwd)]
  }

  /** Call it when the next shell begins with an earlier state. */
  forget(): void {
    this.stand = UNKNOWN_STAND
  }
}
