/** A stop of a server whose conversations have many shells: all of it is ended in time, and the exit code says so. */
import { constants } from 'node:os'
import { expect, inject, test } from 'vitest'
import { setStage, type Stage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'
import { effort, PATIENCE_MS } from '../support/patience.ts'

const SHELLS = effort(12, 1000)
const AT_ONCE = 8

const stageOf = () => setStage([{ text: 'Never asked.' }], { env: { OPENHANDS_ISOLATION: inject('isolation') } })

/** A shell with one process below it, and one that has left its tree. */
async function withShell(stage: Stage): Promise<string> {
  const id = await stage.create()
  const command = 'sleep 1000 & setsid sleep 1000 & echo there'
  expect((await stage.server.call('POST', `/conversations/${id}/commands`, { command })).status).toBe(200)
  return id
}

async function withShells(stage: Stage, count: number): Promise<string[]> {
  const ids: string[] = []
  let begun = 0
  const make = async () => {
    while (begun++ < count) ids.push(await withShell(stage))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, make))
  expect(markedProcesses(ids[0]!).length).toBeGreaterThan(2)
  return ids
}

const STOPPING: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGALRM', 'SIGXCPU', 'SIGPWR']
const WITHOUT_EFFECT: readonly NodeJS.Signals[] = [
  'SIGUSR1',
  'SIGUSR2',
  'SIGVTALRM',
  'SIGPROF',
  'SIGIO',
  'SIGSTKFLT',
  'SIGXFSZ',
  'SIGPIPE',
]
/** Faults of the program, those that no program can handle, those of job control, and other names. */
const LEFT_TO_THE_SYSTEM =
  `SIGSEGV SIGBUS SIGFPE SIGILL SIGTRAP SIGABRT SIGIOT SIGSYS SIGKILL SIGSTOP SIGCONT SIGTSTP SIGTTIN
  SIGTTOU SIGCHLD SIGURG SIGWINCH SIGPOLL`.split(/\s+/)

test.runIf(inject('isolation') === 'none')(
  `each signal stops the server as SIGTERM does, which ends ${SHELLS} shells, or has no effect, or is a fault of the program`,
  { timeout: 4 * PATIENCE_MS },
  async () => {
    expect([...STOPPING, ...WITHOUT_EFFECT, ...LEFT_TO_THE_SYSTEM].toSorted()).toEqual(
      Object.keys(constants.signals).toSorted(),
    )
    await using stage = await stageOf()
    const { server } = stage
    for (const signal of WITHOUT_EFFECT) process.kill(server.pid, signal)
    for (const [at, signal] of STOPPING.entries()) {
      // Stopped already: this starts it again.
      if (at > 0) await server.restart()
      const ids = await withShells(stage, at === 0 ? SHELLS : 1)
      expect(await server.stop(signal), `${signal}: ${server.output()}`).toBe(0)
      expect(
        ids.filter((id) => markedProcesses(id).length > 0),
        signal,
      ).toEqual([])
    }
  },
)
