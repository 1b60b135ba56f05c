/** A stop of a server whose conversations have many shells: all of it is ended in time, and the exit code says so. */
import { expect, inject, test } from 'vitest'
import { setStage, type Stage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'
import { effort, PATIENCE_MS } from '../support/patience.ts'

const SHELLS = effort(12, 1000)
const AT_ONCE = 8

const stageOf = () => setStage([{ text: 'Never asked.' }], { env: { OPENHANDS_ISOLATION: inject('isolation') } })

/** A shell with one process below it, and one that has left its tree. */
async function withShell(stage: Stage, fields: object = {}): Promise<string> {
  const id = await stage.create({ ...fields })
  const command = 'sleep 1000 & setsid sleep 1000 & echo there'
  expect((await stage.server.call('POST', `/conversations/${id}/commands`, { command })).status).toBe(200)
  return id
}

test(
  `${SHELLS} shells: none of their processes is left, and the exit code is 0`,
  { timeout: 4 * PATIENCE_MS },
  async () => {
    await using stage = await stageOf()
    const ids: string[] = []
    let begun = 0
    const make = async () => {
      while (begun++ < SHELLS) ids.push(await withShell(stage))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, make))
    expect(markedProcesses(ids[0]!).length).toBeGreaterThan(2)
    expect(await stage.server.stop('SIGTERM'), stage.server.output()).toBe(0)
    expect(ids.filter((id) => markedProcesses(id).length > 0)).toEqual([])
  },
)
