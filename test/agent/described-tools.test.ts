/** What model requests list: the same array as long as nothing has changed, so that providers find it in their cache. */
import { expect, test } from 'vitest'
import { createDescriber } from '../../src/agent/describe-tool.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { tool } from '../conversations/fixtures.ts'

const plain = (name: string): Tool => tool(name, () => ({ output: '' }))

/** A tool that names the agents of now, and how often it was asked. */
function taskTool() {
  const task = { agents: 'one', asked: 0 }
  const described = Object.defineProperty({ ...plain('Task'), callsSubagent: true }, 'description', {
    get: () => {
      task.asked++
      return task.agents
    },
  }) as Tool
  return { task, described }
}

test('tools that do not change are described once', () => {
  const describe = createDescriber({ tools: [plain('One'), { ...plain('Two'), inputSchema: { type: 'object' } }] })
  const first = describe()
  expect(first.map(({ name }) => name)).toEqual(['One', 'Two'])
  expect(first[1]?.inputSchema).toEqual({ type: 'object' })
  expect(describe()).toBe(first)
})

test('tools that come and go follow the others, and another list of them is another array', () => {
  const changing = { listed: [plain('Three')] as readonly Tool[], find: () => undefined }
  const describe = createDescriber({ tools: [plain('One')], changing })
  const names = () => describe().map(({ name }) => name)
  expect(names()).toEqual(['One', 'Three'])
  expect(describe()).toBe(describe())
  changing.listed = [plain('Four'), plain('Three')]
  expect(names()).toEqual(['One', 'Four', 'Three'])
  changing.listed = []
  expect(names()).toEqual(['One'])
})

test('the tool that names agents is described again after a change of the settings, if they are others', () => {
  const { task, described } = taskTool()
  let settings = {}
  const describe = createDescriber({ tools: [plain('One'), described], settings: () => settings })
  const first = describe()
  task.agents = 'two'
  expect(describe()).toBe(first)
  settings = {}
  const second = describe()
  expect(second.map(({ description }) => description)).toEqual([expect.any(String), 'two'])
  settings = {}
  const asked = task.asked
  expect(describe()).toBe(second)
  expect(task.asked).toBe(asked + 1)
  expect(describe()).toBe(second)
  expect(task.asked).toBe(asked + 1)
})

test('without settings the tool that names agents is looked at each time', () => {
  const { task, described } = taskTool()
  const describe = createDescriber({ tools: [described] })
  expect(describe()[0]?.description).toBe('one')
  task.agents = 'two'
  expect(describe()[0]?.description).toBe('two')
})
