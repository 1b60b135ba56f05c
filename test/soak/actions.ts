/** What clients do in a soak, each action with how often it is chosen. */
import { join } from 'node:path'
import { planText } from './random-turns.ts'
import type { Answer, World } from './world.ts'
import { POPULATION } from './world.ts'

type Action = (world: World, id: string) => Promise<unknown>

/** Chooses one and does it. */
export async function doSomething(world: World): Promise<void> {
  const id = world.pick()
  if (id === undefined || world.ids.size < POPULATION / 2) await create(world)
  else await world.random.pick(CHOICES)(world, id)
}

const ODD_SERVER = join(import.meta.dirname, '../mcp/children/odd-server.ts')
const MCP = { mcpServers: { odd: { command: process.execPath, args: [ODD_SERVER] } } }
const TOOLS = ['Bash', 'BashOutput', 'Read', 'Write', 'Glob', 'Grep', 'AskUserQuestion', 'Task']
const LOOK_UP = { name: 'look_up', description: 'Looks up a number.', input_schema: { type: 'object' }, timeout: 5 }

async function create(world: World): Promise<void> {
  const { random, modelUrl, ids } = world
  const provider = random.pick(['openai', 'openai', 'openai_responses', 'anthropic'])
  const llm_config = { model: 'scripted', base_url: modelUrl, api_key: 'scripted-model-key', provider }
  const { status, body } = await world.request('POST', '/conversations', {
    llm_config,
    tools: TOOLS,
    client_tools: [LOOK_UP],
    confirmation_mode: random.below(4) === 0,
    title: `Number ${random.below(100)}`,
    ...(random.below(3) === 0 && { secrets: { TOKEN: `secret-value-${random.below(1e9)}` } }),
    ...(random.below(20) === 0 && { mcp: MCP }),
    ...(random.below(3) === 0 && { initial_message: { role: 'user', content: planText(random) } }),
  })
  if (status === 201) ids.add(body.id)
}

/** Creates one. Deletes the oldest before, while others open them, if there are enough. */
async function replace(world: World): Promise<void> {
  while (world.ids.size >= POPULATION) {
    const id = world.oldest()!
    const read = (path: string) => world.request('GET', `/conversations/${id}${path}`)
    await Promise.all([read('/events?limit=5'), read('/tasks'), world.remove(id), read('/events/count')])
  }
  await create(world)
}

const fork: Action = async (world, id) => {
  const { status, body } = await world.request('POST', `/conversations/${id}/fork`, {})
  if (status === 201) world.ids.add(body.id)
  await replace(world)
}

const ask =
  (path: string): Action =>
  (world, id) =>
    world.request('GET', `/conversations/${id}${path}`)

const post =
  (path: string, bodyOf: (world: World) => unknown = () => ({})): Action =>
  (world, id) =>
    world.request('POST', `/conversations/${id}${path}`, bodyOf(world))

const say = (run: boolean) =>
  post('/messages', ({ random }) => ({ message: { role: 'user', content: planText(random) }, run }))

type Item = any // eslint-disable-line typescript/no-explicit-any

/** Does something with one of the items of a list. */
const withOne =
  (list: string, act: (world: World, base: string, item: Item) => Promise<unknown>): Action =>
  async (world, id) => {
    const { status, body }: Answer = await world.request('GET', `/conversations/${id}${list}`)
    if (status !== 200 || body.items.length === 0) return
    await act(world, `/conversations/${id}`, world.random.pick(body.items))
  }

const answerWith = (kind: string, answerOf: (world: World, request: Item) => object) =>
  withOne(`/requests?kinds=${kind}`, (world, base, request) =>
    world.request('POST', `${base}/requests/${request.request_id}`, { kind, ...answerOf(world, request) }),
  )

const decide = answerWith('permission', ({ random }, { payload }) => ({
  decisions: payload.tool_uses.map(({ tool_use_id, input_hash }: { tool_use_id: string; input_hash: string }) => {
    return { tool_use_id, input_hash, behavior: random.pick(['allow', 'allow', 'deny']) }
  }),
}))
const answerQuestion = answerWith('question', () => ({ answers: { '0': 'Yes' } }))
const answerCall = answerWith('client_tool', () => ({ output: 'It is seven.' }))

const runCommand = post('/commands', ({ random }) => ({
  command: random.pick(['echo hello', 'seq 3000', 'cd /tmp && pwd', 'exit 3', 'echo $TOKEN']),
  session_id: random.pick(['default', 'default', 'other']),
}))

const runInBackground = post('/commands', () => ({ command: 'sleep 3; echo done', background: true }))
const endCommand = withOne('/commands', (world, base, command) =>
  world.request('DELETE', `${base}/commands/${command.id}`),
)

const putFile: Action = (world, id) => {
  const { random } = world
  const content = Buffer.alloc(random.below(64 * 1024), random.below(256))
  return world.request('PUT', `/conversations/${id}/files/up-${random.below(5)}`, content)
}

const putSecret: Action = (world, id) => {
  const secrets = { TOKEN: `secret-value-${world.random.below(1e9)}` }
  return world.request('PUT', `/conversations/${id}/secrets`, { secrets })
}

const addCallback: Action = async (world, id) => {
  const { body } = await world.request('GET', `/conversations/${id}/callbacks`)
  if (body?.items?.length < 2) await world.request('POST', `/conversations/${id}/callbacks`, { url: world.receiverUrl })
}

const changeCallback = withOne('/callbacks', async (world, base, { id }) => {
  const path = `${base}/callbacks/${id}`
  const changes = [
    () => world.request('DELETE', path),
    () => world.request('PUT', path, { enabled: true }),
    () => world.request('POST', `${path}/rotate-secret`, { overlap_seconds: 1 }),
    () => world.request('GET', `${path}/deliveries`),
  ]
  await world.random.pick(changes)()
})

const configure: Action = (world, id) =>
  world.request('PUT', `/conversations/${id}/config`, {
    title: `Number ${world.random.below(100)}`,
    max_iteration_per_run: 5 + world.random.below(20),
    ...(world.random.below(20) === 0 && { mcp: world.random.pick([{}, MCP]) }),
  })

const postTask = post('/tasks', ({ random }) => ({
  title: 'A task',
  runnable: random.pick([
    { type: 'AgentRun', message: { role: 'user', content: planText(random) } },
    { type: 'Command', command: 'echo of a task' },
    { type: 'Ticker', interval: 0.1, count: 5 },
  ]),
}))
const cancelTask = withOne('/tasks', (world, base, task) => world.request('DELETE', `${base}/tasks/${task.id}`))

/** Each with its weight. */
const ACTIONS: readonly (readonly [number, Action])[] = [
  [6, replace],
  [1, fork],
  [12, say(true)],
  [4, say(false)],
  [6, post('/run')],
  [3, post('/pause')],
  [3, post('/pause', () => ({ interrupt: true }))],
  [2, post('/confirmation', ({ random }) => ({ enabled: random.below(3) === 0 }))],
  [10, decide],
  [2, post('/reject', () => ({ reason: 'Not now.' }))],
  [6, answerQuestion],
  [6, answerCall],
  [4, runCommand],
  [1, runInBackground],
  [1, endCommand],
  [1, (world, id) => world.request('DELETE', `/conversations/${id}/processes?pattern=sleep`)],
  [4, putFile],
  [3, ask('/files/up-1')],
  [2, ask('/files')],
  [1, (world, id) => world.request('DELETE', `/conversations/${id}/files/up-1`)],
  [2, putSecret],
  [1, (world, id) => world.request('DELETE', `/conversations/${id}/secrets/TOKEN`)],
  [2, addCallback],
  [2, changeCallback],
  [3, configure],
  [2, postTask],
  [1, cancelTask],
  [1, post('/compact')],
  [2, post('/events', () => ({ name: 'noticed', data: { by: 'the soak' } }))],
  [3, ask('/events?limit=50')],
  [2, ask('/events?q=word7&limit=5')],
  [4, ask('')],
  [1, ask('/mcp')],
  [1, ask('/agent-info')],
  [1, (world) => world.request('GET', '/conversations?limit=20')],
  [1, (world) => world.request('GET', '/conversations/count')],
]

const CHOICES = ACTIONS.flatMap(([weight, action]) => Array.from({ length: weight }, () => action))
