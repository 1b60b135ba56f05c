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
 * Bash that runs the program, closes the channel to the server and becomes `argv`. When the program fails, nothing of
 * `argv` runs.
 */
export function afterListener(argv: readonly string[]): string[] {
  const program = isSea()
    ? [PROGRAM, LISTENER_COMMAND, String(PROXY_PORT)]
    : // The sources may lie where a sandbox sees nothing of them.
      [PROGRAM, '-e', `(${offerListener.toString()})(${PROXY_PORT})`]
  return ['bash', '-c', RUN_FIRST, String(program.length), ...program, ...argv]
}

/** `$0` is the number of words of the program; the descriptor of reports is none of its business. */
const RUN_FIRST = `channel=$NODE_CHANNEL_FD
"\${@:1:$0}" </dev/null >/dev/null 3>&- || exit
unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
eval "exec $channel>&-"
shift "$0"
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
  process.on('message', () => process.exit(0))
  process.on('disconnect', () => fail('the server has closed the channel'))
  listener.on('error', (error) => fail(error.message))
  listener.listen({ host: '127.0.0.1', port }, () => process.send?.('listener', listener))
}

/**
 * Takes the listening socket from the started program, and gives it to `adopt`; what that returns is called when the
 * program has ended. Bash begins only after that.
 */
export function takeListener(child: ChildProcess, adopt: (listener: Server) => () => void): void {
  child.once('message', (_, listener) => {
    if (!(listener instanceof Server)) return child.disconnect()
    const end = adopt(listener)
    child.once('exit', end)
    // It ends by itself then; nobody else ever holds its end of the channel.
    child.send('adopted', () => child.connected && child.disconnect())
  })
}
