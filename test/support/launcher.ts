/** Launchers of the tests' own, that start shells on the host by another command line. */
import { mkdir } from 'node:fs/promises'
import { launchOnHost } from '../../src/sandbox/launch.ts'
import type { Launch, ShellLauncher } from '../../src/sandbox/launch.ts'

export function launcherOf(
  argvOf: (argv: readonly string[]) => readonly string[],
  generations?: Launch['generations'],
): ShellLauncher {
  return {
    isolation: 'none',
    async launch(argv, { workdir }) {
      await mkdir(workdir, { recursive: true })
      return launchOnHost(argvOf(argv), generations)
    },
  }
}
