/** `agent-server completion`: prints the script of a shell. Each is written from the tables of the command line. */
import type { CompletedShell } from '../command-line/subcommands.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS: Readonly<Record<CompletedShell, () => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript }

export const completionScript = (shell: CompletedShell): string => SCRIPTS[shell]()
