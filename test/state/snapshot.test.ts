import { expect, test } from 'vitest'
import { decideRecover } from '../../src/state/run-end.ts'
import { readSnapshot, writeSnapshot } from '../../src/state/snapshot.ts'
import type { State, Subagent } from '../../src/state/state-shape.ts'
import { NO_AGENT } from '../../src/state/state-shape.ts'
import { stateOf } from '../../src/state/subagents.ts'
import { asked, conversationId, folded, runId, status, toolUse } from '../conversations/events.ts'

/** The state as the next start reads it: JSON in between. */
async function restarted(state: State): Promise<State> {
  let json = ''
  const snapshots = {
    read: async () => JSON.parse(json) as unknown,
    write: async (_id: string, snapshot: object) => void (json = JSON.stringify(snapshot)),
  }
  await writeSnapshot({ snapshots }, state)
  const read = await readSnapshot({ snapshots }, conversationId)
  if (!read) throw new Error('the snapshot was not used')
  return read
}

const newRunId = '018f0000-0000-7000-8000-00000000000e'

const WORKING: Subagent = {
  toolUseId: 'task',
  callerId: undefined,
  agentId: runId,
  name: 'helper',
  tools: ['Bash'],
  deny: [],
  model: undefined,
  mode: undefined,
  isBackground: true,
  firstSeq: 2,
  agent: NO_AGENT,
}

const waiting = folded([status('running'), toolUse('a'), asked(['a']), status('waiting_for_confirmation', 'running')])

test('after a restart a subagent has nothing of the main agent: neither its request nor its run', async () => {
  const before: State = { ...waiting, subagents: [WORKING] }
  const after = await restarted(before)
  expect(after.request?.id).toBe(waiting.request?.id)
  const [subagent] = after.subagents
  const own = stateOf(after, subagent!)
  for (const name of ['run', 'request', 'answered', 'forgotten'] as const) expect(own[name], name).toBeUndefined()
})

test('what a restart closes does not depend on the snapshot: a request of the main agent still waits', async () => {
  const before: State = { ...waiting, subagents: [WORKING] }
  const recover = { kind: 'recover', why: 'server_restart', newRunId, now: Date.parse(before.updatedAt) } as const
  const events = decideRecover(await restarted(before), recover)
  expect(events).toEqual(decideRecover(before, recover))
  expect(events.map(({ type }) => type)).toEqual(['Result'])
})
