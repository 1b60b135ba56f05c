/** `agent-server completion`: prints the script of a shell. Each is written from the tables of the command line. */
import type { Shell } from '../command-line/commands.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS: Readonly<Record<Shell, () => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript }

export const completionScript = (shell: Shell): string => SCRIPTS[shell]()
