/**
 * What is measured of two executables. Each row is a cost, so that less is better: time, CPU time or memory, for one piece
 * of work. CPU time hardly depends on what else the machine does.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import { deliver } from '../deltas.ts'
import type { ModelProcess } from '../model-process.ts'
import { KEY, megabytesOf, startUntilCreated } from '../server-process.ts'
import { timesOfRun } from '../steps.ts'
import type { AgentServer } from '../subjects.ts'
import { cpuMsOf, listen, send, startAgentServer } from '../subjects.ts'
import { median } from '../table.ts'
import type { Costs, Opened } from './rounds.ts'

/** Starts an executable, so that it can be measured. */
export type Comparison = (executable: string, model: ModelProcess) => Promise<Opened>

const STEPS = 100
const PARALLEL = 8
const PARALLEL_STEPS = 25
const CREATED_AT_A_TIME = 16
const LISTED = 100

export const COMPARISONS: Readonly<Record<string, Comparison>> = {
  steps: onServer(async (server, model) => {
    const before = server.cpuMs()
    const times = await timesOfRun(server, model, STEPS)
    return { 'a step, ms': median(times), 'a step, CPU ms': (server.cpuMs() - before) / STEPS }
  }),

  parallel: onServer((server) =>
    each(`a step of ${PARALLEL} conversations at once`, server, PARALLEL * PARALLEL_STEPS, async () => {
      const ids = await Promise.all(Array.from({ length: PARALLEL }, () => server.create()))
      await Promise.all(ids.map((id) => server.run(id, { steps: PARALLEL_STEPS })))
    }),
  ),

  deltas: onServer((server) => burst('a text delta of many to one subscriber', server, 1, 4000)),

  'deltas-10': onServer((server) => burst('a text delta of many to one of 10 subscribers', server, 10, 1500)),

  'deltas-50': onServer((server) => burst('a text delta of many to one of 50 subscribers', server, 50, 400)),

  delta: onServer(async (server) => {
    const { ages } = await deliver(server, 1, { pieces: 150, gapMs: 5 })
    return { 'a single text delta, from the model to a subscriber, ms': median(ages) }
  }),

  creates: onServer((server) =>
    each(`a create, ${CREATED_AT_A_TIME} at a time`, server, 320, async () => {
      let left = 320
      const create = async () => {
        while (left-- > 0) await server.create()
      }
      await Promise.all(Array.from({ length: CREATED_AT_A_TIME }, create))
    }),
  ),

  create: onServer((server) => inSeries('a create, one after the other', server, 100, () => server.create())),

  'create-run': onServer((server) =>
    inSeries('a create, a message with `run` at once, until its result', server, 40, async () => {
      const id = await server.create()
      const message = { role: 'user', content: JSON.stringify({ pieces: 1 }) }
      await send(`${server.url}/conversations/${id}/messages`, { message, run: true })
      await untilResult(server, id)
    }),
  ),

  list: onServer(
    (server) => inSeries('a list of 50 conversations', server, 200, () => get(`${server.url}/conversations?limit=50`)),
    async (server) => {
      for (let i = 0; i < LISTED; i++) await server.create()
    },
  ),

  alive: onServer((server) => inSeries('`GET /alive`', server, 1000, () => get(`${server.url}/alive`))),

  start: (executable) => Promise.resolve({ measure: () => startCosts(executable), async [Symbol.asyncDispose]() {} }),
}

type Measure = (server: AgentServer, model: ModelProcess) => Promise<Costs>

function onServer(measure: Measure, prepare?: (server: AgentServer) => Promise<void>): Comparison {
  return async (executable, model) => {
    const server = await startAgentServer(model.url, {}, { executable, port: await freePort() })
    try {
      await prepare?.(server)
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
    return { measure: () => measure(server, model), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  }
}

async function burst(what: string, server: AgentServer, subscribers: number, pieces: number): Promise<Costs> {
  const before = server.cpuMs()
  const { ages, ms } = await deliver(server, subscribers, { pieces })
  if (ages.length < subscribers * pieces)
    throw new Error(`${subscribers * pieces - ages.length} of ${subscribers * pieces} text deltas were lost`)
  return {
    [`${what}, µs`]: (ms * 1000) / ages.length,
    [`${what}, CPU µs`]: cpuSince(before, server, ages.length) * 1000,
  }
}

async function each(what: string, server: AgentServer, count: number, work: () => Promise<void>): Promise<Costs> {
  const before = server.cpuMs()
  const began = performance.now()
  await work()
  const ms = (performance.now() - began) / count
  return { [`${what}, ms`]: ms, [`${what}, CPU ms`]: cpuSince(before, server, count) }
}

const cpuSince = (before: number, server: AgentServer, count: number) => (server.cpuMs() - before) / count

const inSeries = (what: string, server: AgentServer, count: number, work: () => Promise<unknown>) =>
  each(what, server, count, async () => {
    for (let i = 0; i < count; i++) await work()
  })

/** The stream begins with the first event, because the result may be stored by now. */
async function untilResult(server: AgentServer, id: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const path = `${server.url}/conversations/${id}/events/stream?types=Result&after_seq=0`
  const close = await listen(path, (frame) => frame.includes('event: Result') && resolve())
  await promise
  close()
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

async function get(url: string): Promise<void> {
  const request = http.get(url, { agent, headers: { authorization: `Bearer ${KEY}` } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  if (response.statusCode !== 200) throw new Error(`${url} was answered with ${response.statusCode}`)
}

/** Measures a start with an empty data directory, and what is resident once nothing more is done. */
async function startCosts(executable: string): Promise<Costs> {
  const home = await mkdtemp(join(tmpdir(), 'bench-start-'))
  const server = await startUntilCreated(home, { executable, port: await freePort() })
  try {
    const cpuMs = cpuMsOf(server.pid)
    await untilIdle(server.pid)
    return {
      'start until a conversation was created, ms': server.createdMs,
      'start until a conversation was created, CPU ms': cpuMs,
      'idle memory, MB': megabytesOf(server.pid),
    }
  } finally {
    await server.kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** It used no CPU time for this long, milliseconds. */
const IDLE_MS = 200

async function untilIdle(pid: number): Promise<void> {
  for (let before = -1; before !== cpuMsOf(pid); await sleep(IDLE_MS)) before = cpuMsOf(pid)
}
