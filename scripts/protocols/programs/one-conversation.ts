/** One conversation that has everything, by the client of each protocol. It starts a server, and restarts it. */
import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { KEY, startServer } from '../../../test/support/server.ts'
import { agentTurn } from '../scripted-agent.ts'
import * as cases from './cases.ts'
import { A2aStory } from './story/a2a-story.ts'
import { AcpStory } from './story/acp-story.ts'
import { AgUiStory } from './story/ag-ui-story.ts'
import { AiSdkStory } from './story/ai-sdk-story.ts'
import { ChatStory } from './story/chat-story.ts'
import { McpStory } from './story/mcp-story.ts'
import { ResponsesStory } from './story/responses-story.ts'
import { assertShown, readShownWords } from './story/shown-words.ts'
import type { StoryClient, StoryPlace } from './story/story-client.ts'
import { PIXEL } from './story/story-client.ts'
import { clearWire, recordWire, wireText } from './story/wire.ts'

recordWire()

const model = await startScriptedModel(agentTurn)
const home = realpathSync(mkdtempSync(join(tmpdir(), 'one-conversation-')))
const server = await startServer({
  env: {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'none-needed',
    OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,acp,a2a,mcp',
    OPENHANDS_WORKDIR_BASE: home,
  },
})
const tools = ['Bash', 'Glob', 'TaskTracker', 'AskUserQuestion', 'Task']
assert.equal((await server.call('PUT', '/profiles/default', { tools })).status, 201)

type Logged = { readonly type: string; readonly [field: string]: unknown }

async function eventsOf(id: string): Promise<Logged[]> {
  return (await server.call('GET', `/conversations/${id}/events?limit=1000`)).body.items as Logged[]
}

async function isWorking(id: string): Promise<void> {
  await cases.eventually(async () => (await server.call('GET', `/conversations/${id}`)).body.status === 'running')
}

type Start = (place: StoryPlace) => StoryClient | Promise<StoryClient>

const table = readShownWords()
assert.deepEqual([...table.keys()], ['Responses', 'Chat', 'AI SDK', 'AG-UI', 'ACP', 'A2A', 'MCP'])

function storyOf(name: string, start: Start, lacks: readonly string[] = []) {
  let client: StoryClient
  const story: Record<string, () => Promise<void>> = {
    async text() {
      client = await start({ url: server.url, key: KEY, home })
      assert.equal(await client.say(cases.HELLO), cases.GREETING)
    },
    async reasoning() {
      assert.equal(await client.say(cases.SLOWLY), cases.WORDS)
    },
    async 'parallel tools'() {
      assert.match(await client.say('look around'), /^Read: /)
    },
    async approval() {
      await client.ask(cases.COMPUTE)
      assert.match(await client.reply({ allow: true }), cases.RESULT)
    },
    async question() {
      await client.ask('which one')
      // The Responses API has no word for an answer: the message closes the question.
      assert.match(await client.reply({ label: 'PostgreSQL' }), /PostgreSQL|I am the agent/)
    },
    async 'client tool'() {
      await client.ask(cases.LOOK_UP)
      assert.equal(await client.reply({ output: cases.SHIPPED }), `Read: ${cases.SHIPPED}`)
    },
    async subagent() {
      assert.match(await client.say('delegate'), /^Read: .*The small part is done/s)
    },
    async image() {
      assert.equal(await client.say('See this picture', PIXEL), 'I see a pixel.')
    },
    async steering() {
      const id = await client.id()
      const said = client.say('linger')
      await isWorking(id)
      const message = { role: 'user', content: 'hurry up' }
      assert.equal((await server.call('POST', `/conversations/${id}/messages`, { message, run: true })).status, 202)
      assert.equal(await said, 'I hurry.')
    },
    async retry() {
      assert.equal(await client.say('torn'), 'In one piece.')
      assert.doesNotMatch(await client.shown(), /lost words/)
    },
    async cancel() {
      const said = client.say(cases.ENDLESS).catch(() => '')
      await isWorking(await client.id())
      await client.stop()
      await said
      assert.equal(await client.say(cases.HELLO), cases.GREETING)
    },
    async restart() {
      await client.ask(cases.COMPUTE)
      await server.restart('SIGKILL')
      await client.comeBack()
      assert.match(await client.reply({ allow: true }), cases.RESULT)
      assert.equal(await client.say(cases.HELLO), cases.GREETING)
    },
    async log() {
      const events = await eventsOf(await client.id())
      const count = (isMeant: (event: Logged) => boolean) => events.filter(isMeant).length
      const answered = (kind: string) => count((event) => event.type === 'RequestAnswered' && event['kind'] === kind)
      assert.equal(answered('permission'), 2)
      assert.equal(answered('client_tool'), lacks.includes('client tool') ? 0 : 1)
      assert.equal(
        count(({ type }) => type === 'SubagentStart'),
        1,
      )
      assert.equal(
        count((event) => event.type === 'ToolUse' && event['name'] === 'Glob'),
        2,
      )
      assert.equal(
        count((event) => event.type === 'ToolUse' && event['name'] === 'Bash'),
        2,
      )
      assert.equal(
        count((event) => event.type === 'Result' && event['interrupted'] === true),
        1,
      )
      assert.equal(
        count((event) => event.type === 'UserMessage' && JSON.stringify(event).includes(PIXEL)),
        lacks.includes('image') ? 0 : 1,
      )
      await client[Symbol.asyncDispose]()
    },
  }
  const steps = Object.entries(story).filter(([step]) => !lacks.includes(step))
  const shown = table.get(name)
  assert.deepEqual(
    [...(shown ?? [])].filter(([step, words]) => words.length > 0 && !steps.some(([each]) => each === step)),
    [],
  )
  return Object.fromEntries(
    steps.map(([step, run]) => [
      `${name}: ${step}`,
      async () => {
        clearWire()
        await run()
        assertShown(shown?.get(step) ?? [], wireText())
      },
    ]),
  )
}

await cases.runCases({
  ...storyOf('Responses', (place) => ResponsesStory.start(place)),
  ...storyOf('Chat', (place) => new ChatStory(place)),
  ...storyOf('AI SDK', (place) => new AiSdkStory(place)),
  ...storyOf('AG-UI', (place) => new AgUiStory(place)),
  ...storyOf('ACP', (place) => AcpStory.start(place), ['client tool']),
  ...storyOf('A2A', (place) => A2aStory.start(place), ['client tool']),
  ...storyOf('MCP', (place) => McpStory.start(place), ['client tool', 'image']),
  async 'the server ends'() {
    await server[Symbol.asyncDispose]()
    await model.close()
  },
})
