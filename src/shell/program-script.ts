/**
 * How a program begins: a shell in its sandbox reads the program's command and variables from a descriptor, and becomes
 * the program. So no process that starts it has its variables, and none of these texts is among the arguments of a
 * process outside of the sandbox, which every user of the host can read.
 */
import { isVariableName } from '../contract/values/environment-variables.ts'
import { quote } from './bash-script.ts'

/** The number of the descriptor, in the place of the one for a shell's reports. */
export const SCRIPT_STDIO_INDEX = 3

/**
 * The program does not start in the workdir by the server: changing there may hang. `-p`: not a program that agents put
 * on `PATH`.
 */
export const programArgv = (workdir: string): string[] => [
  '/bin/sh',
  '-c',
  `cd -- "$1" && eval "$(command -p cat <&${SCRIPT_STDIO_INDEX})"`,
  'sh',
  workdir,
]

/**
 * Returns the text for the descriptor. Its last line starts the program, so that it never runs with a part of its
 * variables. Throws for what no process can be given.
 */
export function programScript(argv: readonly string[], variables: Readonly<Record<string, string>>): string {
  for (const [name, value] of Object.entries(variables)) {
    if (!isVariableName(name)) throw new Error('one of its variables has a name that is not one of a variable')
    if (value.includes('\0')) throw new Error(`its variable ${name} has a NUL character`)
  }
  if (argv.some((word) => word.includes('\0'))) throw new Error('its command has a NUL character')
  // `command`: a variable that a shell keeps for itself, such as UID in bash, must not end the shell.
  const exports = Object.entries(variables).map(([name, value]) => `command export ${name}=${quote(value)}\n`)
  return `${exports.join('')}exec ${argv.map(quote).join(' ')} ${SCRIPT_STDIO_INDEX}<&-\n`
}
