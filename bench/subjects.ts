/** What is measured side by side, behind one interface: this server, a bare loop, and two durable bare loops. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ModelProcess, Plan } from './model-process.ts'
import { startModel } from './model-process.ts'
import type { Place } from './server-process.ts'
import { KEY, startServerProcess } from './server-process.ts'

export type Subject = AsyncDisposable & {
  readonly pid: number
  /** `tools` and further fields are for the server only: the others have a shell. */
  readonly create: (tools?: string | readonly string[], fields?: object) => Promise<string>
  /** Has the agent do it, and resolves when it is done. */
  readonly run: (id: string, plan: Plan) => Promise<void>
  /** Calls with each piece of text as it comes in; resolves, once that is sure, to how to stop it. */
  readonly subscribe: (id: string, onText: (text: string) => void) => Promise<() => void>
  /** CPU that it and all it started have used so far. */
  readonly cpuMs: () => number
}

export type Sides = {
  readonly server: Subject
  readonly bare: Subject
  readonly durable: Subject
  /** Durable, and asks through the `openai` package. */
  readonly openai: Subject
}

/** All at once, with one model: the caller measures them in turn. */
export async function withSubjects<T>(measure: (sides: Sides, model: ModelProcess) => Promise<T>): Promise<T> {
  await using model = await startModel()
  await using server = await startAgentServer(model.url)
  await using bare = await startBareLoop(model.url)
  await using durable = await startDurableLoop(model.url)
  await using openai = await startDurableLoop(model.url, 'openai')
  return await measure({ server, bare, durable, openai }, model)
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })
const AUTH = { authorization: `Bearer ${KEY}` }

export type AgentServer = Subject & { readonly url: string }

export async function startAgentServer(
  modelUrl: string,
  settings: Record<string, string> = {},
  place: Place = {},
): Promise<AgentServer> {
  const home = await mkdtemp(join(tmpdir(), 'bench-server-'))
  const { pid, url, kill } = await startServerProcess(home, settings, place)
  const llm_config = { model: 'bench', base_url: modelUrl, api_key: 'bench-model-key' }
  const post = (path: string, body: unknown) => send(`${url}${path}`, body)
  return {
    pid,
    url,
    create: async (tools = ['Bash'], fields = {}) =>
      (JSON.parse(await post('/conversations', { llm_config, tools, ...fields })) as { id: string }).id,
    async run(id, plan) {
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const path = `${url}/conversations/${id}/events/stream?types=Result`
      const close = await listen(path, (frame) => frame.includes('event: Result') && resolve())
      await post(`/conversations/${id}/messages`, {
        message: { role: 'user', content: JSON.stringify(plan) },
        run: true,
      })
      await ended
      close()
    },
    subscribe: (id, onText) =>
      listen(`${url}/conversations/${id}/events/stream?deltas=true&types=AssistantDelta`, (frame) => {
        if (frame.includes('event: AssistantDelta')) onText(frame)
      }),
    cpuMs: () => cpuMsOf(pid),
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(home, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

async function startDurableLoop(modelUrl: string, ...client: 'openai'[]): Promise<Subject> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-durable-'))
  const subject = await startBareLoop(modelUrl, directory, ...client)
  return {
    ...subject,
    async [Symbol.asyncDispose]() {
      await subject[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Starts the bare loop, which is durable if it has a directory. */
async function startBareLoop(modelUrl: string, ...how: string[]): Promise<Subject> {
  const child = fork(join(import.meta.dirname, 'bare-loop.ts'), [modelUrl, ...how])
  const [url] = (await once(child, 'message')) as [string]
  return {
    pid: child.pid!,
    create: () => Promise.resolve(crypto.randomUUID()),
    run: async (id, plan) => void (await send(`${url}/${id}`, plan)),
    subscribe: (id, onText) => listen(`${url}/${id}`, onText),
    cpuMs: () => cpuMsOf(child.pid!),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** Sends a request over a connection that stays open, a GET without a body; returns the body of the answer. */
export async function send(url: string, body?: unknown): Promise<string> {
  const request = http.request(url, {
    method: body === undefined ? 'GET' : 'POST',
    agent,
    headers: { ...AUTH, 'content-type': 'application/json' },
  })
  request.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece as string
  if (response.statusCode! >= 400) throw new Error(`${url}: ${response.statusCode} ${text}`)
  return text
}

/** Every frame of an event stream. */
export async function listen(url: string, onFrame: (frame: string) => void): Promise<() => void> {
  const request = http.get(url, { agent: false, headers: { ...AUTH, accept: 'text/event-stream' } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`)
  let rest = ''
  response.setEncoding('utf8').on('error', () => {})
  response.on('data', (piece: string) => {
    const frames = (rest + piece).split('\n\n')
    rest = frames.pop()!
    frames.forEach(onFrame)
  })
  return () => void request.destroy()
}

/** Hundredths of a second are what Linux counts in. */
const TICK_MS = 10

/** Returns the time of the process, of its children that have ended, and of those that live. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0)
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  return own + children.reduce((sum, child) => sum + cpuMsOf(Number(child)), 0)
}
