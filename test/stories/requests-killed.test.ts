/**
 * Requests of all kinds at once, of the main agent and of its subagents, on a server that is killed and stopped in between:
 * clients answer rightly, wrongly, twice at once and with keys that may not. `SEED` says what is done; a failure names its seed.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import { REQUESTS, REQUEST_KINDS } from '../../src/contract/requests/request-kinds.ts'
import type { AnswerRequest, OpenRequest } from '../../src/contract/request.ts'
import { canonicalJson } from '../../src/lib/json/canonical-json.ts'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { askCall } from '../conversations/actions.ts'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { answersIn, decisionsIn, openedIn } from '../support/answering.ts'
import { openIn } from '../support/log-rules.ts'
import { effort, IS_SOAK, PATIENCE_MS } from '../support/patience.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

/** `npm run soak` looks for what no seed has shown yet. */
const SEED = Number(process.env['SEED'] ?? (IS_SOAK ? Date.now() % 1_000_000 : 600))
const ROUNDS = effort(1, 100)
const STEPS = effort(10, 40)
/** It goes on until requests of all kinds have waited. */
const MAX_STEPS = 100
const POPULATION = effort(2, 4)
/** Fewer than there are agents. */
const SLOTS = 2
/** Of a call of `look_up_soon`, in seconds. */
const SOON = 0.5

const clientTool = (name: string, more: object = {}) => ({
  name,
  description: '',
  input_schema: { type: 'object' },
  ...more,
})
const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')
const FIELDS = {
  tools: ['Bash', 'AskUserQuestion', 'Task'],
  client_tools: [clientTool('look_up'), clientTool('look_up_soon', { timeout: SOON })],
  permission_rules: { ask: ['Bash'] },
  network: { mode: 'allowlist', ask: true },
  subagent_limits: { max_depth: 2 },
  agents: { 'general-purpose': { description: 'Works.', prompt: 'You work.' } },
}

type Call = NonNullable<ScriptedTurn['calls']>[number]
const call = (name: string, args: object = {}): Call => ({ name, arguments: { ...args } })

const command = (mark: string): Call => call('Bash', { command: `echo ${mark} >> ran` })

/** A call that leads to a request of each kind; what a command has written shows that it ran. */
const CALLS: Readonly<Record<RequestKind, (mark: string) => Call>> = {
  permission: command,
  question: () => askCall(),
  client_tool: (mark) => call('look_up', { mark }),
  network: (mark) => call('Bash', { command: `echo ${mark} >> ran; curl -sS -m 20 http://${mark}.example.com/` }),
  elicitation: () => call('mcp__odd__ask'),
  hook: command,
}

const PARTS: readonly ((mark: string) => Call)[] = [
  CALLS.permission,
  CALLS.network,
  CALLS.client_tool,
  (mark) => call('look_up_soon', { mark }),
  CALLS.elicitation,
]

/** Turns by the number in the newest message of an agent: the same turn again has the same calls. */
const script: Script = ({ messages }) => {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && PLAN.test(JSON.stringify(content)))
  if (at < 0) return { text: 'Nothing to do.' }
  const [, number, kind] = PLAN.exec(JSON.stringify(messages[at]!.content))!
  const plan = Number(number)
  const step = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  if (kind !== undefined && step === 0) return { calls: [CALLS[kind as RequestKind](`m${plan}x0x0`)] }
  const random = createRandom(plan * 10 + step)
  const isMain = plan < 1000
  if (step > random.below(3)) return { text: `Plan ${plan} is done.` }
  const part = (run_in_background: boolean) =>
    call('Task', { description: 'A part', prompt: `Follow plan ${1000 + random.below(100_000)}.`, run_in_background })
  if (isMain && random.below(3) > 0)
    return { calls: Array.from({ length: 2 + random.below(2) }, () => part(random.below(3) === 0)) }
  const count = 1 + random.below(2)
  const calls = Array.from({ length: count }, (_, index) => random.pick(PARTS)(`m${plan}x${step}x${index}`))
  return { calls: isMain && random.below(2) === 0 ? [askCall(), ...calls] : calls }
}
const PLAN = /Follow plan (\d+)(?: with (\w+))?\./

/** The answer of the first and of the second of two clients; both fit the request. */
function answerTo(request: OpenRequest, client: 0 | 1): AnswerRequest {
  const behavior = client === 0 ? ('allow' as const) : ('deny' as const)
  switch (request.kind) {
    case 'permission': {
      const left = request.payload.tool_uses.filter(({ decision }) => decision === undefined)
      const decisions = left.map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, behavior }))
      return { kind: 'permission', decisions }
    }
    case 'question':
      return { kind: 'question', answers: { '0': `Said by ${client}` } }
    case 'elicitation':
      return { kind: 'elicitation', answers: { '0': client === 0 ? 'red' : 'green' } }
    case 'client_tool':
      return { kind: 'client_tool', output: { by: client }, is_error: client === 1 }
    case 'network':
      return { kind: 'network', behavior, remember: false }
    case 'hook':
      return { kind: 'hook', text: `Said by ${client}` }
  }
}

type KeyName = 'reads' | 'writes' | 'approves'

class World {
  readonly #stage: Stage
  readonly #random: Random
  readonly #keys: Record<KeyName, string>
  #ids: string[] = []
  /** By the id of the request, what was accepted of it. */
  readonly #accepted = new Map<string, Set<string>>()
  /** The latest deadline that was seen, in milliseconds since 1970. */
  #deadline = 0
  readonly #seen = new Set<RequestKind>()

  constructor(stage: Stage, random: Random, keys: Record<KeyName, string>) {
    this.#stage = stage
    this.#random = random
    this.#keys = keys
  }

  /** The kinds of requests that have not waited yet. */
  get missing(): readonly RequestKind[] {
    return REQUEST_KINDS.filter((kind) => !this.#seen.has(kind))
  }

  async begin(): Promise<void> {
    while (this.#ids.length < POPULATION) await this.#create()
  }

  async step(): Promise<void> {
    const { server } = this.#stage
    const id = this.#random.pick(this.#ids)
    const post = (path: string, body: object = {}) => this.#call('POST', `/conversations/${id}${path}`, body)
    const say = (run: boolean) => post('/messages', { message: this.#message(), run })
    const chosen = this.#random.below(100)
    if (chosen < 60) {
      if (await this.#waits(id)) await this.#respond(id)
      else await say(true)
      return
    }
    if (chosen < 70) await say(true)
    else if (chosen < 74) await say(false)
    else if (chosen < 79) await post('/run')
    else if (chosen < 83) await post('/pause', { interrupt: this.#random.below(2) === 0 })
    else if (chosen < 86) await post('/reject')
    else if (chosen < 88) await this.#replace(id)
    else if (chosen < 90) await this.expectListed()
    else if (chosen < 93) await this.#missDeadlines()
    else if (chosen < 95) await Promise.all([this.#respond(id), server.stop('SIGKILL')]).then(() => server.restart())
    else if (chosen < 96) await server.restart('SIGKILL')
    else if (chosen < 97) await server.restart('SIGTERM')
    else await this.#misuse(id)
  }

  /** Resolves to true when a request waits, and to false if the agent does not work. */
  async #waits(id: string): Promise<boolean> {
    const found = await until('a request, or the end of the run', async () => {
      if ((await this.#requests(id)).length > 0) return 'request'
      await this.#respondIfFull()
      return (await this.#view(id)).status === 'running' ? undefined : 'rest'
    })
    return found === 'request'
  }

  /** Forms and hosts are asked about while a call runs, so those of another conversation can keep all slots. */
  async #respondIfFull(): Promise<void> {
    if ((await this.#activeRuns()) >= SLOTS) for (const id of this.#ids) await this.#respond(id)
  }

  /** Answers until nothing waits or runs, and interrupts what is left. */
  async end(): Promise<void> {
    for (const id of this.#ids) {
      await until(`the end of ${id}`, async () => {
        await this.#respond(id)
        await this.#respondIfFull()
        return (await this.#view(id)).status !== 'running' || undefined
      })
      // A call that takes its time to end, ends afterwards. A host may be asked about longer than its command runs.
      await until(`the rest of ${id}`, async () => {
        await this.#call('POST', `/conversations/${id}/pause`, { interrupt: true })
        await this.#respond(id)
        const isOver = (await this.#requests(id)).length === 0
        return (isOver && (await this.#view(id)).unfinished === undefined) || undefined
      })
    }
    await this.expectListed()
    await until('that no run has a slot', async () => (await this.#activeRuns()) === 0 || undefined)
    const before = await Promise.all(this.#ids.map((id) => this.#view(id)))
    await this.#stage.server.restart('SIGKILL')
    expect(await Promise.all(this.#ids.map((id) => this.#view(id)))).toEqual(before)
    for (const id of this.#ids) await this.#expectTrue(id)
  }

  /** `GET /requests` has what the conversations have, and these what their logs say, once nothing changes. */
  async expectListed(): Promise<void> {
    const idsOf = (requests: readonly OpenRequest[]) => requests.map(({ request_id }) => request_id).toSorted()
    await until('the same lists', async () => {
      const all = (await this.#call('GET', '/requests?limit=500'))?.body.items ?? []
      const each = await Promise.all(this.#ids.map((id) => this.#requests(id)))
      if (idsOf(all.map(({ request }: { request: OpenRequest }) => request)).join() !== idsOf(each.flat()).join())
        return undefined
      const logged = await Promise.all(this.#ids.map(async (id) => openIn(await this.#stage.events(id))))
      const stored = idsOf(each.flat().filter(({ kind }) => kind !== 'hook'))
      return stored.join() === logged.flat().toSorted().join() || undefined
    })
  }

  async #create(): Promise<void> {
    const mayAsk = (kind: RequestKind) => this.#random.below(2) === 0 || this.missing.includes(kind)
    const own = mayAsk('elicitation') ? { mcp: MCP } : {}
    const id = await this.#stage.create({ ...FIELDS, ...own, initial_message: this.#message(), run: true })
    this.#ids.push(id)
    if (mayAsk('hook')) await this.#call('PUT', `/conversations/${id}/client-hooks/guard`, { hooks: HOOKS })
  }

  async #replace(id: string): Promise<void> {
    await Promise.all([this.#respond(id), this.#call('DELETE', `/conversations/${id}`)])
    this.#ids = this.#ids.filter((each) => each !== id)
    await this.#create()
  }

  /** Asks for what has not been seen yet. */
  #message() {
    const [plan, { missing }] = [this.#random.below(1000), this]
    const kind = missing.length > 0 ? ` with ${this.#random.pick(missing)}` : ''
    return { role: 'user', content: `Follow plan ${plan}${kind}.` }
  }

  /** Undefined if the server was killed meanwhile. */
  async #call(method: string, path: string, body?: unknown, key?: KeyName) {
    const headers = key && { authorization: `Bearer ${this.#keys[key]}` }
    const answered = await this.#stage.server.call(method, path, body, headers).catch(() => undefined)
    expect(answered?.status ?? 200, `${method} ${path}`).toBeLessThan(500)
    return answered
  }

  async #view(id: string) {
    const { updated_at: _, context: __, ...view } = (await this.#call('GET', `/conversations/${id}`))?.body ?? {}
    return view
  }

  async #requests(id: string): Promise<OpenRequest[]> {
    const items: OpenRequest[] = (await this.#call('GET', `/conversations/${id}/requests`))?.body.items ?? []
    for (const request of items) {
      this.#seen.add(request.kind)
      if (request.deadline !== undefined && request.kind === 'client_tool')
        this.#deadline = Math.max(this.#deadline, Date.parse(request.deadline))
    }
    return items
  }

  /** Two clients answer one request at the same time; then the one whose answer counts says it again. */
  async #respond(id: string): Promise<void> {
    const open = await this.#requests(id)
    if (open.length === 0) return
    const request = this.#random.pick(open)
    const clients = this.#random.pick([[0], [1], [0, 1], [1, 0]] as const)
    await Promise.all(clients.map((client) => this.#answer(id, request, client)))
    await Promise.all(clients.map((client) => this.#answer(id, request, client)))
  }

  async #answer(id: string, request: OpenRequest, client: 0 | 1): Promise<void> {
    const { kind, request_id } = request
    const body = answerTo(request, client)
    const key = REQUESTS[kind].scope === 'write' ? 'writes' : 'approves'
    const answered = await this.#call('POST', `/conversations/${id}/requests/${request_id}`, body, key)
    if (answered?.status === 200) {
      const accepted = this.#accepted.get(request_id) ?? new Set()
      this.#accepted.set(request_id, accepted.add(String(client)))
      expect([...accepted], `two answers to the ${kind} ${request_id} count`).toHaveLength(1)
    } else if (answered) expect([404, 409, 410]).toContain(answered.status)
  }

  /** Keys without the scope, and answers of another kind, change nothing. */
  async #misuse(id: string): Promise<void> {
    for (const request of await this.#requests(id)) {
      const path = `/conversations/${id}/requests/${request.request_id}`
      const key = this.#random.pick([
        'reads',
        REQUESTS[request.kind].scope === 'write' ? 'approves' : 'writes',
      ] as const)
      const refused = await this.#call('POST', path, answerTo(request, 0), key)
      expect(refused?.status).toBe(403)
      const other =
        request.kind === 'question' ? { kind: 'client_tool', output: 1 } : { kind: 'question', answers: ANY }
      expect([400, 404, 409]).toContain((await this.#call('POST', path, other))?.status)
    }
  }

  /** The server is down while the deadlines pass. */
  async #missDeadlines(): Promise<void> {
    const { server } = this.#stage
    await server.stop(this.#random.pick(['SIGKILL', 'SIGTERM']))
    await until('the deadlines', async () => Date.now() > this.#deadline || undefined)
    await server.restart()
  }

  async #activeRuns(): Promise<number> {
    const { url } = this.#stage.server
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })
    return Number(/^agent_server_runs_active (\d+)/m.exec(await response.text())![1])
  }

  /** What was accepted is in the log, by whom it may; and nothing has run that was not allowed. */
  async #expectTrue(id: string): Promise<void> {
    const events: Event[] = await this.#stage.events(id)
    expect(openIn(events)).toEqual([])
    for (const event of events)
      if (event.type === 'RequestAnswered' && event.answered_by === 'user' && event.key_name !== undefined)
        expect([event.kind, event.key_name]).toEqual([event.kind, `${REQUESTS[event.kind].scope}s`])
    this.#expectAccepted(events)
    const allowed = new Map<string, number>()
    const commands = new Map(
      openedIn(events, 'permission').flatMap(({ request_id, payload }) =>
        payload.tool_uses.map((use) => [`${request_id} ${use.tool_use_id}`, commandOf(use.input)] as const),
      ),
    )
    for (const { request_id, tool_use_id, behavior } of decisionsIn(events)) {
      const mark = /m\d+x\d+x\d+/.exec(commands.get(`${request_id} ${tool_use_id}`) ?? '')?.[0] ?? ''
      if (behavior === 'allow') allowed.set(mark, (allowed.get(mark) ?? 0) + 1)
    }
    const { workdir } = await this.#view(id)
    const ran = (await readFile(join(workdir, 'ran'), 'utf8').catch(() => '')).trim().split('\n')
    for (const mark of new Set(ran.filter(Boolean)))
      expect(ran.filter((each) => each === mark).length, `${mark} ran`).toBeLessThanOrEqual(allowed.get(mark) ?? 0)
  }

  #expectAccepted(events: readonly Event[]): void {
    const stored = new Map<string, string>()
    for (const { request_id, answer } of answersIn(events, 'client_tool'))
      stored.set(request_id, String((answer.output as { by: number }).by))
    for (const { request_id, answer } of answersIn(events, 'question'))
      stored.set(request_id, canonicalJson(answer).includes('Said by 1') ? '1' : '0')
    for (const { request_id, answer } of answersIn(events, 'elicitation'))
      stored.set(request_id, canonicalJson(answer).includes('green') ? '1' : '0')
    for (const { request_id, behavior, answered_by } of decisionsIn(events))
      if (answered_by === 'user') stored.set(request_id, behavior === 'allow' ? '0' : '1')
    for (const event of events) {
      if (event.type !== 'RequestOpened' || event.kind === 'network') continue
      const [accepted] = this.#accepted.get(event.request_id) ?? []
      if (accepted !== undefined)
        expect([event.request_id, stored.get(event.request_id)]).toEqual([event.request_id, accepted])
    }
  }
}

const commandOf = (input: unknown) => String((input as { command?: unknown }).command)

const MCP = { mcpServers: { odd: { command: process.execPath, args: [join(CHILDREN, 'odd-server.ts')] } } }
const HOOKS = { PreToolUse: [{ matcher: 'Bash', hooks: [{ id: 'guard', timeout: 2 }] }] }
const ANY = { '0': 'x' }

const SCOPES = { reads: ['read'], writes: ['read', 'write'], approves: ['read', 'approve'] }

test.each(Array.from({ length: ROUNDS }, (_, round) => SEED + round))(
  'seed %i: each request has one end, no answer is lost or counts twice, and nothing runs without its decision',
  async (seed) => {
    const env = {
      OPENHANDS_ISOLATION: 'bubblewrap',
      OPENHANDS_MAX_CONCURRENT_RUNS: String(SLOTS),
      OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':'),
    }
    await using stage = await setStage(script, { env })
    const keyOf = async (name: KeyName) =>
      (await stage.server.call('POST', '/keys', { name, scopes: SCOPES[name] })).body.key as string
    const keys = { reads: await keyOf('reads'), writes: await keyOf('writes'), approves: await keyOf('approves') }
    const world = new World(stage, createRandom(seed), keys)
    await world.begin()
    for (let step = 0; step < STEPS || (world.missing.length > 0 && step < MAX_STEPS); step++) await world.step()
    await world.end()
    expect(world.missing, 'kinds of requests that never waited').toEqual([])
  },
  effort(2, 10) * PATIENCE_MS,
)
