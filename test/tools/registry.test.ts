import { describe, expect, test } from 'vitest'
import { buildSystemPrompt } from '../../src/agent/prompt.ts'
import { ToolCalls } from '../../src/agent/tool-calls.ts'
import { DEFAULT_TOOLS, PRESETS } from '../../src/tools/presets.ts'
import { TOOL_NAMES, createTools, resolveToolNames } from '../../src/tools/registry.ts'
import { TOOLS_THAT_FINISH } from '../../src/state/answered.ts'
import { TOOLS_KEPT_IN_LOG } from '../../src/state/state.ts'
import { UNUSED_DEPS } from '../../scripts/tool-costs.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { contextIn } from './tool-fixture.ts'

const deps = UNUSED_DEPS

test.each([
  ['execute_bash', 'Bash'],
  ['BashTool', 'Bash'],
  ['file_editor', 'FileEditor'],
  ['FileEditorTool', 'FileEditor'],
  ['str_replace_editor', 'FileEditor'],
  ['TaskTrackerTool', 'TaskTracker'],
  ['FinishTool', 'Finish'],
  ['ThinkTool', 'Think'],
  ...TOOL_NAMES.map((name): [string, string] => [name, name]),
] satisfies [string, string][])('%s is a name for %s', (name, canonical) => {
  expect(resolveToolNames([name])).toEqual([canonical])
})

test('each tool is there once, in the order it was named first', () => {
  expect(resolveToolNames(['file_editor', 'Bash', 'FileEditor', 'execute_bash'])).toEqual(['FileEditor', 'Bash'])
})

test.each(['bash', 'constructor', '', 'x'.repeat(200)])(
  '%j is not a tool, and the answer names the existing ones',
  (name) => {
    expect(() => resolveToolNames([name])).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringContaining('Bash, FileEditor, TaskTracker, Finish, Think'),
      }),
    )
  },
)

test('a preset is the tools that it names, without those that the server cannot offer', () => {
  expect(resolveToolNames('default')).toEqual(DEFAULT_TOOLS)
  expect(resolveToolNames('minimal')).toEqual(['Bash', 'Read', 'Write'])
  expect(resolveToolNames('openhands')).toEqual(['Bash', 'FileEditor', 'TaskTracker', 'Finish', 'Think'])
  expect(resolveToolNames('claude')).toEqual(PRESETS.claude)
  const missing = new Set(['WebSearch'] as const)
  expect(resolveToolNames('claude', missing)).toEqual(PRESETS.claude.filter((name) => name !== 'WebSearch'))
})

test('a tool that is asked for by name and cannot be offered is an error that says what is missing', () => {
  expect(() => resolveToolNames(['Bash', 'WebSearch'], new Set(['WebSearch'] as const))).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/tools\.1.*TAVILY_API_KEY/) }),
  )
  const tools = createTools(['Bash', 'WebSearch'], { ...deps, searchEngine: undefined })
  expect(tools.map(({ name }) => name)).toEqual(['Bash'])
})

test('every tool is made under its own name, and described in a form that a model takes', () => {
  const tools = createTools(TOOL_NAMES, deps)
  expect(tools.map((tool) => tool.name)).toEqual(TOOL_NAMES)
  const toolCalls = new ToolCalls({
    tools,
    context: () => contextIn('/work'),
    redactor: createRedactor(),
    emit: async () => {},
    adviceFor: () => undefined,
    onOutput: () => {},
    onCrash: () => {},
  })
  for (const { description, inputSchema } of toolCalls.descriptions) {
    expect(description.length).toBeGreaterThan(30)
    expect(inputSchema).toMatchObject({ type: 'object', properties: expect.any(Object) })
    // Some providers take no schema that is one of several.
    expect(JSON.stringify(inputSchema)).not.toMatch(/anyOf|oneOf|\$ref/)
  }
})

test('a name that only a log knows makes no tool and does no harm', () => {
  expect(createTools(['Telepathy', 'Think', '__proto__'], deps).map((tool) => tool.name)).toEqual(['Think'])
})

test('those kept in the log, and those of the preset, exist', () => {
  expect(TOOL_NAMES).toEqual(expect.arrayContaining([...TOOLS_KEPT_IN_LOG, ...TOOLS_THAT_FINISH, ...DEFAULT_TOOLS]))
})

describe('the small ones', () => {
  const make = (name: string) => createTools([name], deps)[0]!

  test('Finish ends the run, and answers its message', async () => {
    const finish = make('Finish')
    expect(finish.finishes).toBe(true)
    expect(await finish.run(finish.input.parse({ message: 'All done.' }), contextIn('/work'))).toEqual({
      output: 'All done.',
    })
    expect(finish.input.safeParse({}).success).toBe(false)
  })

  test('Think has no effect', async () => {
    const think = make('Think')
    expect(think.finishes).toBeFalsy()
    expect(await think.run(think.input.parse({ thought: 'hm' }), contextIn('/work'))).toEqual({
      output: expect.any(String),
    })
  })
})

describe('the system prompt', () => {
  const promptFor = (tools: readonly string[]) =>
    buildSystemPrompt({ workdir: '/work', tools, extensions: [], microagents: [] })

  test('teaches the tools that there are, and no others', () => {
    const all = promptFor(TOOL_NAMES)
    for (const name of ['Bash', 'FileEditor', 'TaskTracker', 'Finish']) {
      expect(all).toContain(name)
      expect(promptFor(TOOL_NAMES.filter((each) => each !== name))).not.toContain(name)
    }
  })
})
