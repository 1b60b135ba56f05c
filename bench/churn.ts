/** How fast the server answers while a thousand subscribers come and go, compared with none. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChurnOutcome, ChurnPlan } from '../test/support/churn.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'

const CONVERSATIONS = 200
const SUBSCRIBERS = 1000
const SECONDS = 10
const IDLE_MS = 5000
/** The pause between two questions. */
const PAUSE_MS = 5

export async function benchChurn(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-churn-'))
  const { kill } = await startServerProcess(home)
  try {
    const conversations: string[] = []
    for (let i = 0; i < CONVERSATIONS; i++) conversations.push(await createOne())
    await latencies(sleep(IDLE_MS / 5)) // warms up
    const idle = await latencies(sleep(IDLE_MS))
    const outcome = runChurn({ url: URL, key: KEY, conversations, subscribers: SUBSCRIBERS, seconds: SECONDS, seed: 1 })
    const busy = await latencies(outcome)
    const { connections, events, faults } = await outcome
    const what = `${SUBSCRIBERS.toLocaleString('en')} subscribers come and go`
    return [
      [
        `\`/alive\` while ${what}, median / 99th of a hundred`,
        `${at(busy, 0.5)} / ${at(busy, 0.99)} ms`,
        `alone: ${at(idle, 0.5)} / ${at(idle, 0.99)} ms`,
      ],
      [
        `${what}: connections, events sent to them`,
        `${connections.toLocaleString('en')}, ${events.toLocaleString('en')}`,
        `${faults.length} missed or doubled`,
      ],
    ]
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function createOne(): Promise<string> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  return (JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }).id
}

/** Runs in a separate process, because a thousand clients would delay the measurements of this one. */
async function runChurn(plan: ChurnPlan): Promise<ChurnOutcome> {
  const child = fork(join(import.meta.dirname, 'churn-process.ts'), [JSON.stringify(plan)])
  const [outcome] = (await once(child, 'message')) as [ChurnOutcome]
  return outcome
}

/** Milliseconds of each answer until `over`, on one connection that is kept. */
async function latencies(over: Promise<unknown>): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const ended = new AbortController()
  void over.finally(() => ended.abort())
  const all: number[] = []
  while (!ended.signal.aborted) {
    const began = performance.now()
    const [response] = (await once(http.get(`${URL}/alive`, { agent }), 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    all.push(performance.now() - began)
    await sleep(PAUSE_MS)
  }
  agent.destroy()
  return all.toSorted((a, b) => a - b)
}

const at = (sorted: readonly number[], share: number): string => sorted[Math.floor(sorted.length * share)]!.toFixed(2)
