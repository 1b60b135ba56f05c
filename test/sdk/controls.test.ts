/** What a query says about its session and changes in it, and where a session begins and ends, in the names of the Claude Agent SDK. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { QueryOptions } from '../../src/index.ts'
import { query, run, sessions } from '../../src/index.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { setServedStage } from './stage.ts'

const stage = await setServedStage()
const { server } = stage
const project = join(stage.home, 'project')
await mkdir(join(project, '.claude/commands'), { recursive: true })
await writeFile(
  join(project, '.claude/commands/count.md'),
  '---\ndescription: Counts files.\nargument-hint: "[directory]"\n---\nCount the files in $ARGUMENTS.',
)

/** Reads the first event, does the work while the query lasts, and reads the rest. */
async function during<T>(options: QueryOptions, work: (asking: ReturnType<typeof query>) => Promise<T>): Promise<T> {
  const asking = query({ prompt: 'hello', options: { ...stage.options, ...options } })
  await asking.next()
  const done = await work(asking)
  for await (const _ of asking);
  return done
}

test('a query says what its session has: models, commands, agents, MCP servers and context', async () => {
  const options: QueryOptions = {
    cwd: project,
    settingSources: ['project'],
    tools: ['Bash', 'Task'],
    agents: { counter: { description: 'Counts.', prompt: 'Count.' } },
    mcpServers: { broken: { command: '/nowhere/at-all' } },
    llm: { contextWindow: 100_000 },
  }
  await during(options, async (asking) => {
    expect(await asking.supportedCommands()).toEqual([
      { name: 'count', description: 'Counts files.', argumentHint: '[directory]' },
    ])
    expect(await asking.supportedAgents()).toContainEqual(expect.objectContaining({ name: 'counter' }))
    expect(await asking.mcpServerStatus()).toMatchObject([{ name: 'broken' }])
    expect((await asking.supportedModels()).length).toBeGreaterThan(100)
    const { totalTokens, maxTokens, percentage } = await asking.getContextUsage()
    expect(maxTokens).toBe(100_000)
    expect(percentage).toBeCloseTo(totalTokens / 1000)
  })
})

test('setMcpServers replaces the servers of a session that is running', async () => {
  const mcpServers = { first: { command: '/nowhere/at-all' } }
  const { sessionId, change } = await during({ mcpServers }, async (asking) => ({
    change: await asking.setMcpServers({ second: { command: '/nowhere/else' } }),
    sessionId: asking.sessionId!,
  }))
  expect(change).toEqual({ added: ['second'], removed: ['first'] })
  expect(Object.keys((await server.client.conversation(sessionId).get()).mcp?.mcpServers ?? {})).toEqual(['second'])
})

test('a change to nothing is refused before anything is changed', async () => {
  const mcpServers = { first: { command: '/nowhere/at-all' } }
  const { sessionId } = await during({ mcpServers }, async (asking) => {
    const nothing = undefined as never
    await expect(asking.setMcpServers(nothing)).rejects.toThrow('mcpServers must be an object of objects.')
    await expect(asking.setPermissionMode(nothing)).rejects.toThrow('permissionMode must be a text.')
    await expect(asking.setModel(nothing)).rejects.toThrow('model must be a text that is not empty.')
    return { sessionId: asking.sessionId! }
  })
  expect((await server.client.conversation(sessionId).get()).mcp).toMatchObject({ mcpServers })
})

test('stopTask cancels a task of the session', async () => {
  const ended = await during({}, async (asking) => {
    const { tasks } = server.client.conversation(asking.sessionId!)
    const { id } = await tasks.post({ title: 'ticks', runnable: { type: 'Ticker', interval: 60, count: 10 } })
    return await asking.stopTask(id)
  })
  expect(ended).toMatchObject({ status: 'cancelled' })
})

test('a session has the id, the title, the labels, the metadata and the variables that it is given', async () => {
  const sessionId = uuid7()
  const given = { title: 'totals', labels: ['nightly'], metadata: { ticket: 17 }, env: { STAGE: 'test' } }
  const prompt = 'call Bash {"command": "echo stage $STAGE"}'
  const { events } = await run({ prompt, options: { ...stage.options, tools: ['Bash'], sessionId, ...given } })
  expect(JSON.stringify(events.find(({ type }) => type === 'ToolResult'))).toContain('stage test')
  const place = sessions({ persistDir: stage.options.persistDir })
  expect(await place.get(sessionId)).toMatchObject({ id: sessionId, ...given })
  await place.rename(sessionId, 'sums')
  await place.setLabels(sessionId, ['daily', 'a, b'])
  const found = await Array.fromAsync(place.list({ label: ['a, b', 'daily'], metadata: ['ticket=17'] }))
  expect(found).toMatchObject([{ id: sessionId, title: 'sums', labels: ['daily', 'a, b'] }])
})

test('a copy ends at the event that resumeSessionAt names, and has the id that is given', async () => {
  const { sessionId, events } = await run({ prompt: 'hello', options: stage.options })
  const first = events.find(({ type }) => type === 'AssistantMessage')!
  await run({ prompt: 'call Bash {"command": "true"}', options: { ...stage.options, resume: sessionId } })
  for (const resumeSessionAt of [first.id, first.seq]) {
    const id = uuid7()
    const options = { ...stage.options, resume: sessionId, fork: true, sessionId: id, resumeSessionAt }
    expect((await run({ prompt: 'hello', options })).sessionId).toBe(id)
    const copied = await server.client.conversation(id).listEvents().all()
    expect(copied.filter(({ type }) => type === 'UserMessage')).toHaveLength(2)
  }
  const kept = { ...stage.options, resume: sessionId }
  await expect(run({ prompt: 'x', options: { ...kept, resumeSessionAt: 3 } })).rejects.toThrow('Pass fork: true, too.')
  await expect(run({ prompt: 'x', options: { ...kept, sessionId: uuid7() } })).rejects.toThrow('Pass resume alone')
})
