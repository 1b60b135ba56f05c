/**
 * How the server listens inside of a sandbox's network namespace: a program of the server's own runs there first, before
 * anything of the agent's, makes the listening socket, hands it to the server and ends. The socket stays in its namespace,
 * so the server takes the connections of exactly that sandbox, and no process is left behind.
 */
import type { ChildProcess } from 'node:child_process'
import { Server } from 'node:net'
import { isSea } from 'node:sea'
import { PROXY_PORT } from './proxy-environment.ts'

/** Where the sandbox has the server's executable; bwrap makes this directory anew for each. */
const PROGRAM = '/dev/agent-server'
/** The command of the executable that runs the program. */
export const LISTENER_COMMAND = 'network-listener'

/** The mount that the program needs, as arguments of bwrap(1). */
export const listenerMount = (): string[] => ['--ro-bind', process.execPath, PROGRAM]

/**
 * A shell that runs the program and becomes `argv`. When the program fails, nothing of `argv` runs. It is named by its
 * path: a search could find what an agent has put on `PATH`, and that would hold the channel.
 */
export function afterListener(argv: readonly string[]): string[] {
  const program = isSea()
    ? [PROGRAM, LISTENER_COMMAND, String(PROXY_PORT)]
    : // The sources may lie where a sandbox sees nothing of them.
      [PROGRAM, '-e', `(${offerListener.toString()})(${PROXY_PORT})`]
  return ['/bin/sh', '-c', RUN_FIRST, ...program, ...argv]
}

/** The descriptor of reports is none of the program's business, nor is what lies in the workdir. */
const RUN_FIRST = `(cd / && exec "$0" "$1" "$2" </dev/null >/dev/null 3>&-) || exit
unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
shift 2
exec "$@"`

/**
 * The program. It is passed on as text, so it uses nothing from outside of itself; and it must not load the server, whose
 * start each sandbox would wait for.
 */
export function offerListener(port: number): void {
  const fail = (reason: string) => {
    process.stderr.write(`The network proxy cannot listen in the sandbox: ${reason}\n`)
    process.exit(1)
  }
  const listener = process.getBuiltinModule('node:net').createServer()
  let isAdopted = false
  process.on('message', () => (isAdopted = true))
  // What comes next could write anything into the channel: it must be closed on the other side by then.
  process.on('disconnect', () => (isAdopted ? process.exit(0) : fail('the server has closed the channel')))
  listener.on('error', (error) => fail(error.message))
  listener.listen({ host: '127.0.0.1', port }, () => process.send?.('listener', listener))
}

/**
 * Takes the listening socket from the started program, and gives it to `adopt`; what that returns is called when the
 * started program has ended. Bash begins only when the channel is closed on this side.
 */
export function takeListener(child: ChildProcess, adopt: (listener: Server) => () => void): void {
  const disconnect = () => child.connected && child.disconnect()
  child.once('message', (_, listener) => {
    if (!(listener instanceof Server)) return void disconnect()
    child.once('exit', adopt(listener))
    child.send('adopted', disconnect)
  })
}
