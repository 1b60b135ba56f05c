/**
 * The signals that end a command, and their exit codes: 128 and the number of the signal, as shells report it.
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
