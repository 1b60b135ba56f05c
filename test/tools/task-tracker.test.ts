import { describe, expect, test } from 'vitest'
import { createTaskTracker } from '../../src/tools/task-tracker.ts'
import { contextIn } from './tool-fixture.ts'

/** Each successful output is the last one for the next call, as the log has it. */
function openTracker(last?: unknown) {
  const tool = createTaskTracker(() => last)
  const call = async (input: object) => {
    const outcome = await tool.run(tool.input.parse(input), contextIn('/work'))
    if (!outcome.error) last = structuredClone(outcome.output)
    return outcome
  }
  return { tool, call, read: async (input: object) => tool.render!((await call(input)).output) }
}

const list = [
  { title: 'read the code', status: 'done' },
  { title: 'mend it', notes: 'the loop\nand its test', status: 'in_progress' },
  { title: 'tell' },
]

test('the view shows the plan', async () => {
  const { tool, call } = openTracker()
  const expected = { task_list: [...list.slice(0, 2), { title: 'tell', status: 'todo' }] }
  expect(await call({ command: 'plan', task_list: list })).toEqual({ output: expected })
  expect(await call({ command: 'view' })).toEqual({ output: expected })
  expect(tool.output!.parse(expected)).toEqual(expected)
})

test('a plan replaces the whole list', async () => {
  const { call } = openTracker()
  await call({ command: 'plan', task_list: list })
  await call({ command: 'plan', task_list: [] })
  expect((await call({ command: 'view' })).output).toEqual({ task_list: [] })
})

describe('a model reads', () => {
  test('the tasks with their marks', async () => {
    const { read } = openTracker()
    expect(await read({ command: 'plan', task_list: list })).toBe(
      'Task list (1 of 3 done):\n1. [x] read the code\n2. [>] mend it\n   the loop\n   and its test\n3. [ ] tell',
    )
  })

  test('that there are none', async () => {
    expect(await openTracker().read({ command: 'view' })).toBe('The task list is empty.')
  })
})

test('a plan without a list is refused, and changes nothing', async () => {
  const { call } = openTracker()
  await call({ command: 'plan', task_list: list })
  expect((await call({ command: 'plan' })).error).toEqual({
    type: 'invalid_input',
    message: 'Parameter `task_list` is required for command: plan.',
  })
  expect((await call({ command: 'view' })).output).toMatchObject({ task_list: { length: 3 } })
})

test('a list that another version wrote and this one cannot read counts as none', async () => {
  expect((await openTracker({ tasks: 1 }).call({ command: 'view' })).output).toEqual({ task_list: [] })
})

test.each([
  {},
  { command: 'plan', task_list: [{ title: '' }] },
  { command: 'plan', task_list: [{ title: 'x', status: 'doing' }] },
  { command: 'plan', task_list: Array.from({ length: 101 }, () => ({ title: 'x' })) },
])('refuses the input %j', (input) => {
  expect(openTracker().tool.input.safeParse(input).success).toBe(false)
})
