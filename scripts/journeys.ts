/**
 * Lists the files and functions of `src/` that run for one journey, such as a message: counted by V8 while a server
 * does it.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import type { Profiler } from 'node:inspector'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer } from '../src/sdk/create-server.ts'
import { query } from '../src/sdk/query.ts'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'

export type Journey = {
  readonly name: string
  readonly files: ReadonlyMap<string, readonly CalledFunction[]>
}
/** `at`: where it begins in the file. */
export type CalledFunction = { readonly name: string; readonly at: number; readonly calls: number }

const MCP_SERVER = join(import.meta.dirname, '../bench/mcp-server.ts')
/** The server itself: not its clients, and not what answers for the model. */
const CLIENTS = /^(llm\/scripted|sdk|client|cli)\//
const MODEL = /^llm\/scripted\//
/** Work has ended when for this long nothing ran that does not also run in a server without requests. */
const QUIET_MS = 300
/** The server is watched for so long without requests: its slowest timer has 5 s. */
const WATCHED_MS = 6000

const REPLIES = [
  { when: 'approve', turns: [{ calls: [{ name: 'Bash', arguments: { command: 'echo hi' } }] }, { text: 'Done.' }] },
  { when: 'mcp', turns: [{ calls: [{ name: 'mcp__bench__tool_0', arguments: { subject: 'x' } }] }, { text: 'Done.' }] },
  {
    when: 'delegate',
    turns: [
      {
        calls: [
          {
            name: 'Task',
            arguments: { description: 'x', prompt: 'inner words', subagent_type: 'general-purpose' },
          },
        ],
      },
      { text: 'Done.' },
    ],
  },
  { turns: [{ text: 'Hello there.' }] },
]

/**
 * Traces the journeys one after the other, in one process. Each is done once before it is counted, where that is possible: a message to the
 * end of its run, with a reader of the stream; an approval to the end of its run; a call of a connected MCP server; a
 * subagent to its result; a create; and `query()`, which also counts the SDK and the client.
 */
export async function traceJourneys(): Promise<Journey[]> {
  const journeys: Journey[] = []
  await withServer(async (stage) => {
    await stage.counter.watchTimers()
    journeys.push(await messageIn(stage, 3))
    await traceOthers(stage, journeys)
  })
  return journeys
}

/**
 * Returns what runs for each of three messages: not what one needs because the garbage collector has emptied a cache
 * before it.
 */
export async function traceMessages(): Promise<Journey> {
  let journey: Journey | undefined
  await withServer(async (stage) => {
    journey = await messageIn(stage, 3)
  })
  if (!journey) throw new Error('no message was counted')
  return journey
}

type Stage = {
  readonly server: Server
  readonly options: {
    readonly model: string
    readonly baseUrl: string
    readonly apiKey: string
    readonly persistDir: string
  }
  readonly counter: Awaited<ReturnType<typeof startCounting>>
}

async function withServer(work: (stage: Stage) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'agent-server-journeys-'))
  await using model = await startScriptedModel({ replies: REPLIES })
  const options = {
    model: 'scripted',
    baseUrl: model.baseUrl,
    apiKey: 'key-of-the-journeys',
    persistDir: home,
  }
  const settings = {
    OPENHANDS_ISOLATION: 'none',
    LLM_MODEL: options.model,
    LLM_BASE_URL: options.baseUrl,
    LLM_API_KEY: options.apiKey,
  }
  const server = await createServer({ persistDir: home, settings })
  const counter = await startCounting()
  try {
    await work({ server, options, counter })
  } finally {
    counter.stop()
    await server.close()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function messageIn({ server, counter }: Stage, times = 1): Promise<Journey> {
  const { converse, post, say } = clientOf(server)
  const talk = await converse()
  const stream = follow(server, talk)
  await say(talk, 'hello')
  const count = () => counter.during(() => post(talk, 'hello again'), CLIENTS)
  let files = await count()
  while (--times > 0) files = inBoth(files, await count())
  stream.abort()
  return { name: 'message', files }
}

async function traceOthers({ server, options, counter }: Stage, journeys: Journey[]): Promise<void> {
  const { call, converse, post, say } = clientOf(server)
  const trace = async (name: string, work: () => Promise<unknown>, isServer = true) =>
    void journeys.push({ name, files: await counter.during(work, isServer ? CLIENTS : MODEL) })
  const asked = await converse({ confirmation_mode: true })
  await say(asked, 'approve', 'waiting_for_confirmation')
  const { items } = await call('GET', `/conversations/${asked}/requests`)
  const [{ request_id, payload }] = items
  const decisions = payload.tool_uses.map((use: { tool_use_id: string; input_hash: string }) => ({
    tool_use_id: use.tool_use_id,
    input_hash: use.input_hash,
    behavior: 'allow',
  }))
  const answer = { kind: 'permission', decisions }
  await trace('approval', () => call('POST', `/conversations/${asked}/requests/${request_id}`, answer))
  const bench = { type: 'stdio', command: process.execPath, args: [MCP_SERVER] }
  const connected = await converse({ mcp: { mcpServers: { bench } } })
  await say(connected, 'mcp')
  await trace('MCP call', () => post(connected, 'mcp'))
  const delegating = await converse()
  await trace('subagent', () => post(delegating, 'delegate'))
  await trace('create', () => converse())
  const ask = async () => {
    for await (const event of query({ prompt: 'hi', options })) if (event.type === 'Result') break
  }
  await trace('query()', ask, false)
}

/** The folders and the totals of a journey. */
export function sizeOf({ files }: Journey): { files: number; folders: number; functions: number; calls: number } {
  const functions = [...files.values()].flat()
  return {
    files: files.size,
    folders: new Set([...files.keys()].map((path) => dirname(path))).size,
    functions: functions.length,
    calls: functions.reduce((sum, { calls }) => sum + calls, 0),
  }
}

type Server = Awaited<ReturnType<typeof createServer>>

function clientOf({ url, apiKey }: Server) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  async function call(method: string, path: string, body?: object) {
    const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text)
  }
  async function converse(fields: object = {}): Promise<string> {
    const { id } = await call('POST', '/conversations', { tools: ['Bash', 'Task'], ...fields })
    return id
  }
  const post = (id: string, text: string) =>
    call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: text }, run: true })
  /** Resolves when the agent rests. */
  async function say(id: string, text: string, status = 'idle'): Promise<void> {
    await post(id, text)
    while ((await call('GET', `/conversations/${id}`)).status !== status) await sleep(20)
  }
  return { call, converse, post, say }
}

function follow({ url, apiKey }: Server, id: string): AbortController {
  const controller = new AbortController()
  const headers = { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' }
  const { signal } = controller
  void fetch(`${url}/conversations/${id}/events/stream?after_seq=0&deltas=true`, { headers, signal })
    .then((response) => response.text())
    .catch(() => {}) // aborted
  return controller
}

async function startCounting() {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  /** Returns what ran since the last time. */
  const take = async () => calledIn((await session.post('Profiler.takePreciseCoverage')).result)
  const timers = new Set<string>()
  const placesOf = (called: Called) =>
    [...called].flatMap(([path, functions]) => functions.map(({ at }) => `${path}#${at}`))
  const isOfTimer = (path: string, { at }: CalledFunction) => timers.has(`${path}#${at}`)
  return {
    async watchTimers(): Promise<void> {
      await take()
      await sleep(WATCHED_MS)
      for (const place of placesOf(await take())) timers.add(place)
    },
    async during(work: () => Promise<unknown>, leftOut: RegExp): Promise<Called> {
      // What came before it may have left something for later.
      await sleep(QUIET_MS)
      await take()
      await work()
      let last = await take()
      const parts = [last]
      // What is left for later also belongs to it. What runs again and again does not: a timer of an open shell.
      for (;;) {
        await sleep(QUIET_MS)
        const [before, part] = [new Set(placesOf(last)), await take()]
        const places = placesOf(part).filter((place) => !timers.has(place))
        if (places.every((place) => before.has(place))) {
          for (const place of places) timers.add(place)
          break
        }
        parts.push((last = part))
      }
      return selected(joined(parts), (path, called) => !leftOut.test(path) && !isOfTimer(path, called))
    },
    stop: () => session.disconnect(),
  }
}

type Called = Map<string, readonly CalledFunction[]>

function calledIn(scripts: readonly Profiler.ScriptCoverage[]): Called {
  const own = scripts.filter(({ url }) => url.includes('/src/') && !url.includes('node_modules'))
  return new Map(
    own.flatMap(({ url, functions }): [string, CalledFunction[]][] => {
      // The first range of a function is the whole; a function without a name that begins with the file is its module.
      const called = functions.flatMap(({ functionName: name, ranges: [range] }) =>
        range && range.count > 0 && (name !== '' || range.startOffset > 0)
          ? [{ name, at: range.startOffset, calls: range.count }]
          : [],
      )
      return called.length > 0 ? [[url.replace(/^.*\/src\//, ''), called]] : []
    }),
  )
}

function selected(called: Called, isWanted: (path: string, each: CalledFunction) => boolean): Called {
  const files = [...called].map(
    ([path, functions]) => [path, functions.filter((each) => isWanted(path, each))] as const,
  )
  return new Map(files.filter(([, functions]) => functions.length > 0))
}

const inBoth = (one: Called, other: Called): Called =>
  selected(one, (path, { at }) => other.get(path)?.some((each) => each.at === at) === true)

function joined(parts: readonly Called[]): Called {
  const byPath = Map.groupBy(
    parts.flatMap((part) => [...part]),
    ([path]) => path,
  )
  return new Map(
    [...byPath].map(([path, all]) => {
      const byPlace = Map.groupBy(
        all.flatMap(([, functions]) => functions),
        ({ at }) => at,
      )
      const sums = [...byPlace.values()].flatMap((same) =>
        same.slice(0, 1).map((each) => ({ ...each, calls: same.reduce((sum, { calls }) => sum + calls, 0) })),
      )
      return [path, sums]
    }),
  )
}
