/** The same shells as others, with limits on what runs in them and another end. */
import type { Shell, Shells, ShellsState } from '../shell/shell.ts'

type Limiting = { readonly limited: (shell: Shell) => Shell; readonly close: (state?: ShellsState) => Promise<void> }

export function withLimits(shells: Shells, { limited, close }: Limiting): Shells {
  return {
    get: (sessionId) => limited(shells.get(sessionId)),
    standOf: (sessionId, restarts) => shells.standOf(sessionId, restarts),
    fork: async (sessionId, id) => limited(await shells.fork(sessionId, id)),
    endFork: (id) => shells.endFork(id),
    startProgram: (options) => shells.startProgram(options),
    list: () => shells.list(),
    closeIdle: (ms) => shells.closeIdle(ms),
    end: (sessionId) => shells.end(sessionId),
    processes: () => shells.processes(),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}
