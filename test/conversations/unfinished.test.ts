/** A view says what is unfinished while the agent is at rest: whoever removes old conversations leaves such ones alone. */
import { expect, test } from 'vitest'
import { createTask } from '../../src/tools/task/task.ts'
import { approvalsOf } from '../support/answering.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, gate, say, setBench, tool, until, userText } from './fixtures.ts'

test('a task is unfinished until it has ended', async () => {
  await using bench = await setBench({ script: [] })
  const conversation = await bench.converse()
  expect(conversation.view()).not.toHaveProperty('unfinished')
  const { id } = await conversation.tasks.post({
    title: 'clock',
    runnable: { type: 'Ticker', interval: 60, count: 10 },
  })
  expect(conversation.view()).toMatchObject({ status: 'idle', unfinished: true })
  await conversation.tasks.cancel(id)
  expect(conversation.view()).not.toHaveProperty('unfinished')
})

test('a request is unfinished while it waits, also in a paused conversation', async () => {
  const act = tool('Act', () => ({ output: 'acted' }))
  await using bench = await setBench({ tools: [act], script: [{ calls: [call('Act')] }, { text: 'Done.' }] })
  const conversation = await bench.converse({ permission_mode: 'default' })
  await conversation.post(userText('go', true))
  await until(conversation, 'RequestOpened')
  await conversation.pause({ interrupt: false })
  expect(conversation.view()).toMatchObject({ status: 'paused', unfinished: true })
  const { pending, approve } = approvalsOf(conversation)
  await approve(pending().items[0]!.request_id)
  expect(conversation.view()).not.toHaveProperty('unfinished')
})

test('a subagent in the background is unfinished, although the agent has answered', async () => {
  const slow = gate('Slow')
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [slow.tool, ...(names.includes('Task') ? [createTask(subagents)] : [])],
  }
  await using bench = await setBench({
    deps,
    script: ({ text }) => {
      if (text.includes('You are a worker'))
        return text.includes('through') ? { text: 'It ran.' } : { calls: [call('Slow')] }
      if (text.includes('It ran.')) return { text: 'Done.' }
      return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
    },
  })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const conversation = await bench.converse({ agents })
  await say(conversation)
  expect(conversation.view()).toMatchObject({ status: 'idle', unfinished: true })
  await slow.entered
  slow.open()
  await expect.poll(() => conversation.view()).not.toHaveProperty('unfinished')
})
