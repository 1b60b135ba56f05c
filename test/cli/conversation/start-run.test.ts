/** A message of the command line whose run is refused, because another program was faster, or for its options. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRun } from '../../../src/cli/conversation/start-run.ts'
import { createClient } from '../../../src/client/client.ts'
import type { Stage } from '../../support/agent.ts'
import { setStage } from '../../support/agent.ts'
import { KEY } from '../../support/server.ts'
import { until } from '../../support/until.ts'

const working = Promise.withResolvers<void>()

let stage: Stage
beforeAll(async () => {
  stage = await setStage(async ({ text, messages }) => {
    if (text.includes('WORK') && messages.at(-1)?.role === 'user') {
      await working.promise
      return { calls: [{ name: 'Bash', arguments: { command: 'true' } }] }
    }
    return { text: 'Hello.' }
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const content = (text: string) => [{ type: 'text', text }] as const
const turn = { maxSteps: 5, forcesTool: false }

async function converse() {
  const client = createClient({ baseUrl: stage.server.url, apiKey: KEY })
  return client.conversation(await stage.create({ permission_mode: 'bypass' }))
}

test('a run that is refused for its options leaves no message to the next one', async () => {
  const conversation = await converse()
  const overrides = { allowed_tools: ['Bash('] }
  await expect(startRun(conversation, { ...turn, content: [...content('REFUSED')], overrides })).rejects.toThrow(
    'Bash(',
  )
  await conversation.sendAndWait('hi')
  expect(stage.model.requests.some(({ text }) => text.includes('REFUSED'))).toBe(false)
})

test('a message that came second does not steer the run that came first', async () => {
  const conversation = await converse()
  await conversation.send('WORK')
  const isAsked = async () => stage.model.requests.some(({ text }) => text.includes('WORK'))
  await until('the model is asked', isAsked)
  await expect(startRun(conversation, { ...turn, content: [...content('SECOND')] })).rejects.toMatchObject({
    code: 'already_running',
  })
  working.resolve()
  await conversation.wait()
  expect(stage.model.requests.some(({ text }) => text.includes('SECOND'))).toBe(false)
})
