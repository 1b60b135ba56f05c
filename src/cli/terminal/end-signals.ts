/**
 * The signals that end a command or stop a server, with exit codes: 128 and the number of the signal, as shells report it.
 * And those that end neither.
 */

/**
 * SIGQUIT is Ctrl+\: without a handler it would leave the terminal without echo. SIGALRM comes from a time limit that
 * another program has set before it started this one, SIGXCPU from a limit of processor time, SIGPWR before the power fails.
 */
export const SIGNAL_CODES = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGQUIT: 131,
  SIGALRM: 142,
  SIGXCPU: 152,
  SIGPWR: 158,
} as const
type Name = keyof typeof SIGNAL_CODES

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
export const END_SIGNALS = Object.keys(SIGNAL_CODES) as readonly Name[]

/** Has no meaning here, and would end the process without cleaning up. After SIGXFSZ the write fails, as on a full disk. */
const IGNORED = ['SIGUSR1', 'SIGUSR2', 'SIGVTALRM', 'SIGPROF', 'SIGIO', 'SIGSTKFLT', 'SIGXFSZ'] as const

export function ignoreOtherSignals(): void {
  for (const name of IGNORED) process.on(name, () => {})
}

/** Calls the handler with the exit code of each signal, until it is disposed. */
export function onEndSignals(handle: (code: number) => void): Disposable {
  const listener = (name: Name) => handle(SIGNAL_CODES[name])
  for (const name of END_SIGNALS) process.on(name, listener)
  return {
    [Symbol.dispose]() {
      for (const name of END_SIGNALS) process.off(name, listener)
    },
  }
}
