/**
 * The signals that end a command, and their exit codes: 128 and the number of the signal, as shells report it. The end at
 * once, also while a file system does not answer.
 */

/** SIGQUIT is Ctrl+\: without a handler it would leave the terminal without echo. */
export const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const
type Name = keyof typeof SIGNAL_CODES

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const NAMES = Object.keys(SIGNAL_CODES) as Name[]

/** Calls the handler with the exit code of each signal, until it is disposed. */
export function onEndSignals(handle: (code: number) => void): Disposable {
  const listener = (name: Name) => handle(SIGNAL_CODES[name])
  for (const name of NAMES) process.on(name, listener)
  return {
    [Symbol.dispose]() {
      for (const name of NAMES) process.off(name, listener)
    },
  }
}

/** Kills its parent if it is still there after a second. */
const GUARD = 'sleep 1; read -r _ _ _ parent _ < /proc/$$/stat; [ "$parent" = "$PPID" ] && kill -KILL "$PPID"'

/** An exit waits for each call of a file system in progress, and some never return: then only a kill ends the process. */
export function exitNow(code: number): never {
  // Loaded here, because each start would load it. Without a shell, the exit can wait.
  const { spawn } = process.getBuiltinModule('node:child_process')
  spawn('/bin/sh', ['-c', GUARD], { detached: true, stdio: 'ignore' }).on('error', () => {})
  process.exit(code)
}
