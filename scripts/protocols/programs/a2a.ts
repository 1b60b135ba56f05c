/** The SDK of A2A for npm: its client by JSON-RPC and by HTTP+JSON. */
import { TaskState } from '@a2a-js/sdk'
import type { Task } from '@a2a-js/sdk'
import assert from 'node:assert/strict'
import type { Binding } from '../../../test/support/a2a.ts'
import { a2aClient, answerIn, askedIn, follow, say, says } from '../../../test/support/a2a.ts'
import * as cases from './cases.ts'

const connect = (binding: Binding, key = cases.KEY_OF_SERVER) => a2aClient(cases.URL_OF_SERVER, { key, binding })

async function decide(binding: Binding, behavior: 'allow' | 'deny'): Promise<string> {
  const client = await connect(binding)
  const asked = await say(client, { text: cases.COMPUTE })
  assert.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
  const [{ request_id, kind, tool_uses }] = askedIn(asked)
  const [{ tool_use_id, input_hash, input }] = tool_uses
  assert.deepEqual(input, { command: cases.COMMAND })
  const message = behavior === 'deny' ? { message: cases.REASON } : {}
  const data = { request_id, kind, decisions: [{ tool_use_id, input_hash, behavior, ...message }] }
  const task = await say(client, { taskId: asked.id, data })
  assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
  return answerIn(task)
}

const casesOf = (binding: Binding): Record<string, () => Promise<void>> => ({
  async [`${binding}: text`]() {
    const client = await connect(binding)
    const { task, count } = await follow(client.sendMessageStream(says({ text: cases.SLOWLY })))
    assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
    assert.equal(answerIn(task), cases.WORDS)
    assert.ok(count > 2)
    assert.equal(answerIn(await client.getTask({ tenant: '', id: task.id })), cases.WORDS)
  },
  async [`${binding}: tool`]() {
    assert.match(answerIn(await say(await connect(binding), { text: cases.PLAN })), /^Read: /)
  },
  async [`${binding}: allow`]() {
    assert.match(await decide(binding, 'allow'), cases.RESULT)
  },
  async [`${binding}: deny`]() {
    cases.assertDenied(await decide(binding, 'deny'), cases.REASON)
  },
  async [`${binding}: cancel`]() {
    const client = await connect(binding)
    const begun: Task = await say(client, { text: cases.ENDLESS, now: true })
    const cancelled = await client.cancelTask({ tenant: '', id: begun.id, metadata: undefined })
    assert.equal(cancelled.status?.state, TaskState.TASK_STATE_CANCELED)
    const next = await say(client, { contextId: begun.contextId, text: cases.HELLO })
    assert.equal(answerIn(next), cases.GREETING)
  },
  async [`${binding}: wrong key`]() {
    const client = await connect(binding, cases.WRONG_KEY)
    await assert.rejects(say(client, { text: cases.HELLO }), /401|key/i)
  },
})

await cases.runCases({ ...casesOf('JSONRPC'), ...casesOf('HTTP+JSON') })
