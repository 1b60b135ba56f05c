/** Files that subagents in the background change: in no run of the main agent, or between two of them. */
import { existsSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { untilOpen } from '../support/answering.ts'
import { createPlanner, task } from '../support/subagents.ts'
import { call, eventsOf, only, realShells, say, setBench, tool } from './fixtures.ts'

const AGENTS = { worker: { description: 'Works.', prompt: 'You are a worker.' } }

/** The main agent starts a worker that writes `a` when the run has ended, and then works on until `release` is called. */
async function setScene(fields: object = {}) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const write = tool('Write', async (_, { workdir, signal }) => {
    await ended
    writeFileSync(`${workdir}/a`, 'by the worker')
    signal.addEventListener('abort', () => release(), { once: true })
    await released
    return { output: 'written' }
  })
  const planner = createPlanner()
  planner.plan = {
    'start it': [{ calls: [task('write a', { run_in_background: true })] }, { text: 'Begun.' }],
    'write a': [{ calls: [call('Write')] }, { text: 'It is written.' }],
    'It is written.': [{ text: 'Done.' }],
  }
  const bench = await setBench({
    script: planner.script,
    deps: {
      createShells: realShells(),
      createTools: (names, { subagents }) => [write, ...(names.includes('Task') ? [createTask(subagents)] : [])],
    },
  })
  const conversation = await bench.converse({ file_checkpointing: true, agents: AGENTS, ...fields })
  const { workdir } = conversation.state.settings
  writeFileSync(`${workdir}/kept`, 'before')
  await say(conversation, 'start it')
  end()
  return {
    conversation,
    release,
    at: (name: string) => `${workdir}/${name}`,
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

const rewind = (conversation: Conversation, to_seq: number, more: object = {}) =>
  conversation.rewind({ to_seq, last_seq: conversation.log.head, files: true, ...more }, {})

const resultsOf = async (conversation: Conversation) =>
  only(await eventsOf(conversation), 'Result').filter(({ parent_tool_use_id: caller }) => caller === undefined)

test('what a subagent writes between two runs is in the snapshots and among the changes of the second one', async () => {
  await using scene = await setScene()
  const { conversation, release, at } = scene
  await expect.poll(() => existsSync(at('a'))).toBe(true)
  release()
  await expect.poll(async () => (await resultsOf(conversation)).length).toBe(2)
  await expect.poll(() => conversation.state.status).toBe('idle')
  const [first, second] = await resultsOf(conversation)
  expect([first?.changes?.files, second?.changes?.files]).toEqual([0, 1])
  const { head } = conversation.log
  expect(await rewind(conversation, first!.seq, { conversation: false })).toMatchObject({ files: { removed: ['a'] } })
  expect(await rewind(conversation, head, { conversation: false })).toMatchObject({ files: { changed: ['a'] } })
  expect(await rewind(conversation, 1)).toMatchObject({ files: { removed: ['a'], changed_since: [] } })
  expect(existsSync(at('a'))).toBe(false)
})

test('what a subagent is writing is its own, and goes back without force', async () => {
  await using scene = await setScene()
  const { conversation, at } = scene
  await expect.poll(() => existsSync(at('a'))).toBe(true)
  expect(conversation.state.status).toBe('idle')
  const outcome = await rewind(conversation, 1)
  expect(outcome).toMatchObject({ files: { removed: ['a'] }, closed: { subagents: [expect.any(String)] } })
  expect(existsSync(at('a'))).toBe(false)
})

test('what somebody changes while a subagent waits for an approval is replaced only by force', async () => {
  await using scene = await setScene({ permission_mode: 'default', allowed_tools: ['Task'] })
  const { conversation, at } = scene
  await untilOpen(conversation, 'permission')
  writeFileSync(at('kept'), 'by hand')
  await expect(rewind(conversation, 1)).rejects.toMatchObject({ code: 'files_changed', details: { paths: ['kept'] } })
})
