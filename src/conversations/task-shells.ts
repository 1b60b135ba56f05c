/** Where the commands of tasks run: each in a fresh shell that goes with it, so that none depends on what another has left. */
import type { Shells } from '../workspace/shell.ts'
import type { RunTaskCommand } from './jobs.ts'

export type TaskShellsDeps = {
  /** Those that hold now. */
  readonly shells: () => Pick<Shells, 'get'>
  readonly redact: (text: string) => string
}

export function createTaskShells({ shells, redact }: TaskShellsDeps): RunTaskCommand {
  // Their names come again and again: a session that has ended leaves something behind, and of tasks there may be many.
  const inUse = new Set<string>()

  return async (command, { timeout, signal }) => {
    const name = freeName(inUse)
    inUse.add(name)
    try {
      const shell = shells().get(name)
      try {
        // A server that was killed may have left the state of another task under this name.
        await shell.restart()
        const result = await shell.run(command, { timeout, signal })
        const { exitCode, stdout, stderr, cwd, durationMs, timedOut, truncated } = result
        return {
          type: 'Command',
          exit_code: exitCode,
          stdout: redact(stdout),
          stderr: redact(stderr),
          cwd: redact(cwd),
          execution_time: Math.round(durationMs) / 1000,
          timed_out: timedOut,
          truncated,
        }
      } finally {
        await shell.close()
      }
    } finally {
      inUse.delete(name)
    }
  }
}

function freeName(inUse: ReadonlySet<string>): string {
  for (let n = 1; ; n++) if (!inUse.has(`task-${n}`)) return `task-${n}`
}
