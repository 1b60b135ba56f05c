/** Where subagents began: the log is read once, however often a model asks. */
import { expect, test } from 'vitest'
import { EMPTY_STATE } from '../../src/state/state.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { SubagentStarts } from '../../src/conversations/subagents/subagent-starts.ts'
import { setBench } from './fixtures.ts'

test('many questions at once read the log once, and later starts are known too', async () => {
  await using bench = await setBench()
  const { log } = await bench.converse()
  const start = (agent_id: string, prompt: string) => ({
    type: 'SubagentStart' as const,
    source: 'environment' as const,
    parent_tool_use_id: `call of ${prompt}`,
    agent_name: 'worker',
    agent_id,
    description: 'x',
    prompt,
    system_prompt: 'You work.',
    tools: [],
    background: false,
  })
  const [known, later] = [uuid7(), uuid7()]
  await log.append([start(known, 'first')])
  await log.append([start(known, 'again')])
  const whole: unknown[] = []
  const starts = new SubagentStarts(
    {
      subscribe: (reader) => log.subscribe(reader),
      read: (options) => {
        if (options?.types) whole.push(options)
        return log.read(options)
      },
    },
    { current: EMPTY_STATE },
  )
  const found = await Promise.all(Array.from({ length: 100 }, (_, at) => starts.find(at === 0 ? known : uuid7())))
  expect(found.map((event) => event?.prompt).filter(Boolean)).toEqual(['again'])
  await log.append([start(later, 'later')])
  expect((await starts.find(later))?.prompt).toBe('later')
  expect(whole).toHaveLength(1)
})
