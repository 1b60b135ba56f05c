/** Queries whose agent has subagents in the background. */
import { expect, test } from 'vitest'
import type { QueryEvent, QueryOptions } from '../../src/index.ts'
import { query, run, sessions } from '../../src/index.ts'
import { resultsIn, setServedStage } from './stage.ts'

const stage = await setServedStage()
const { persistDir } = stage.options

const options: QueryOptions = { ...stage.options, permissionMode: 'default', tools: ['Bash', 'Task'] }
const background = (prompt: string) => {
  const input = { description: 'x', prompt, subagent_type: 'general-purpose', run_in_background: true }
  return `call Task ${JSON.stringify(input)}`
}
const asking = background(`call Bash ${JSON.stringify({ command: 'mkdir made' })}`)
const logOf = (id: string) => Array.fromAsync(sessions({ persistDir }).read(id))

test('a query waits for them, decides about their calls, and ends with the run that reads their results', async () => {
  const ended = Promise.withResolvers<void>()
  const canUseTool = async () => {
    await ended.promise
    return { behavior: 'allow' as const }
  }
  const events: QueryEvent[] = []
  for await (const event of query({ prompt: asking, options: { ...options, canUseTool } })) {
    events.push(event)
    if (event.type === 'Result') ended.resolve()
  }
  const [own, again] = resultsIn(events).filter((event) => !('parent_tool_use_id' in event))
  expect(own).toMatchObject({ stop_reason: 'completed' })
  expect(again).toMatchObject({ final_text: expect.stringContaining('It said: [no output]') })
})

test('a query that cannot decide ends, and one that can decides later, for which the main agent is not asked', async () => {
  const first = await run({ prompt: asking, options })
  const { status, last_seq } = await sessions({ persistDir }).get(first.sessionId)
  expect(status).toBe('idle')
  const requests = stage.model.requests.length
  expect(await run({ options: { resume: first.sessionId, persistDir } })).toMatchObject({
    stopReason: 'waiting_for_confirmation',
    events: [{ type: 'RequestOpened', kind: 'permission' }],
  })
  expect(await logOf(first.sessionId)).toHaveLength(last_seq)
  expect(stage.model.requests.length).toBe(requests)
  const resumed = { resume: first.sessionId, persistDir, canUseTool: () => ({ behavior: 'allow' as const }) }
  expect((await run({ options: resumed })).finalText).toContain('It said: [no output]')
  expect(stage.model.requests.length - requests, 'the subagent, and the run that reads its result').toBe(2)
})

test('a query that is left early ends them', async () => {
  const left = query({ prompt: background(`slow ${'for a long time '.repeat(100)}`), options })
  for await (const event of left) if (event.type === 'Result') break
  const ends = resultsIn(await logOf(left.sessionId!))
  expect(ends.map((event) => event.background_agent_id !== undefined)).toEqual([false, true])
})

test('stopTask ends one of them by its agent_id, and the query ends with the run that reads that', async () => {
  const prompt = background(`call Bash ${JSON.stringify({ command: 'sleep 1000' })}`)
  const asked = query({ prompt, options: { ...options, permissionMode: 'bypassPermissions' } })
  const events: QueryEvent[] = []
  const stops: unknown[] = []
  for await (const event of asked) {
    events.push(event)
    if (event.type === 'SubagentStart') stops.push(await asked.stopTask(event.agent_id))
  }
  expect(stops).toMatchObject([{ stop_reason: 'cancelled' }])
  const [stopped] = resultsIn(events).filter((event) => 'parent_tool_use_id' in event)
  expect(stopped).toMatchObject({ stop_reason: 'cancelled', interrupted: true })
  expect(stage.model.requests.at(-1)?.text).toContain('the user stopped it')
})
