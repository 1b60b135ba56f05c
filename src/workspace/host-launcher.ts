/** The launcher without a sandbox: shells run on the host as the server's user. */
import type { Launch, ShellLauncher } from './shell.ts'

export const hostLauncher: ShellLauncher = {
  isolation: 'none',
  async launch(argv, { network }) {
    if (network.mode !== 'open')
      throw new Error(`Without a sandbox no shell is started in the network mode ${network.mode}.`)
    return launchOnHost(argv)
  },
}

/** Starts `argv` as it is. `generations` as in `Launch`. */
export function launchOnHost(argv: readonly string[], generations: Launch['generations'] = 0): Launch {
  return { argv, cwd: '/', env: {}, descriptors: [], generations, [Symbol.asyncDispose]: () => Promise.resolve() }
}
