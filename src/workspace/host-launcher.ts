/** The launcher without a wall: shells run on the host as the server's user. */
import type { ShellLauncher } from './shell.ts'

export const hostLauncher: ShellLauncher = {
  isolation: 'none',
  wrap: (argv) => argv,
}
