/** The launcher without a sandbox: shells run on the host as the server's user. */
import { makeDirectories } from '../files/make-directories.ts'
import type { Launch, ShellLauncher } from './launch.ts'

export const hostLauncher: ShellLauncher = {
  isolation: 'none',
  async launch(argv, { workdir, network }) {
    if (network.mode !== 'open')
      throw new Error(`Without a sandbox no shell is started in the network mode ${network.mode}.`)
    // Recreate it if it was deleted: no shell could start without it.
    await makeDirectories(workdir)
    return launchOnHost(argv)
  },
}

/** Starts `argv` unchanged. `generations` as in `Launch`. */
export function launchOnHost(argv: readonly string[], generations: Launch['generations'] = 0): Launch {
  // Do not start in the workdir: changing there may hang, and Node waits for it.
  return { argv, cwd: '/', env: {}, descriptors: [], generations, [Symbol.asyncDispose]: () => Promise.resolve() }
}
