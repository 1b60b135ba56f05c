/**
 * Listens inside a sandbox's network namespace: a program of the server runs there first, before anything of the agent,
 * creates the listening socket, passes it to the server and exits. The socket stays in its namespace, so the server
 * accepts connections of exactly that sandbox, and no process is left behind.
 */
import { Server } from 'node:net'
import { isSea } from 'node:sea'
import type { ChildProcess } from '../lib/start-process.ts'
import { PROXY_PORT } from './proxy-environment.ts'

/** The path of the server's executable in the sandbox; bwrap creates this directory for each sandbox. */
const PROGRAM = '/dev/agent-server'
/** The command of the executable that runs the program. */
export const LISTENER_COMMAND = 'network-listener'

/** The mount that the program needs, as arguments of bwrap(1). */
export const listenerMount = (): string[] => ['--ro-bind', process.execPath, PROGRAM]

/**
 * Returns a shell command that runs the program and then becomes `argv`. If the program fails, `argv` does not run. The
 * program has an absolute path: a search could find a program that an agent has put on `PATH`, and that would get the
 * channel.
 */
export function afterListener(argv: readonly string[]): string[] {
  const program = isSea()
    ? [PROGRAM, LISTENER_COMMAND, String(PROXY_PORT)]
    : // The sandbox may not see the sources.
      [PROGRAM, '-e', `(${offerListener.toString()})(${PROXY_PORT})`]
  return ['/bin/sh', '-c', RUN_FIRST, ...program, ...argv]
}

/** The program must not get the report descriptor, nor run in the workdir. */
const RUN_FIRST = `(cd / && exec "$0" "$1" "$2" </dev/null >/dev/null 3>&-) || exit
unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
shift 2
exec "$@"`

/**
 * The program. It is passed as text, so it uses nothing from outside; and it must not load the server, whose startup
 * each sandbox would wait for.
 */
export function offerListener(port: number): void {
  const fail = (reason: string) => {
    process.stderr.write(`The network proxy cannot listen in the sandbox: ${reason}\n`)
    process.exit(1)
  }
  const listener = process.getBuiltinModule('node:net').createServer()
  let isAdopted = false
  process.on('message', () => (isAdopted = true))
  // The next program could write anything into the channel: the server must have closed it by then.
  process.on('disconnect', () => (isAdopted ? process.exit(0) : fail('the server has closed the channel')))
  listener.on('error', (error) => fail(error.message))
  listener.listen({ host: '127.0.0.1', port }, () => process.send?.('listener', listener))
}

/**
 * Receives the listening socket from the started program, and passes it to `adopt`; the function that `adopt` returns
 * is called when the started program has ended. Bash begins only when the channel is closed on this side.
 */
export function takeListener(child: ChildProcess, adopt: (listener: Server) => () => void): void {
  const disconnect = () => child.connected && child.disconnect()
  child.once('message', (_, listener) => {
    if (!(listener instanceof Server)) return void disconnect()
    child.once('exit', adopt(listener))
    child.send('adopted', disconnect)
  })
}
