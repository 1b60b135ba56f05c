/**
 * Hundreds of subscribers that come and go, as event streams and as sockets. `CHURN_SECONDS` says how long, `SEED` at which
 * moments; a failure names its seed. `npm run soak` does it with a thousand, for a minute.
 */
import { readFile, readdir, readlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { churn } from '../support/churn.ts'
import type { TestServer } from '../support/server.ts'
import { KEY } from '../support/server.ts'
import { PATIENCE_MS, effort } from '../support/patience.ts'

const SECONDS = Number(process.env['CHURN_SECONDS'] ?? effort(2, 60))
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const CONVERSATIONS = effort(60, 200)
const SUBSCRIBERS = effort(300, 1000)
/**
 * What the server may have grown by when all are gone. A thousand at a time take 200 MB at their height, most of it blocks of
 * logs that were read for them, and the allocator keeps that room; it does not grow with how often they come.
 */
const MAX_GROWTH_MB = 320

/** What the server itself counts. */
async function streamsIn({ url }: TestServer): Promise<string[]> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })
  return (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('agent_server_streams{'))
    .toSorted()
}

async function socketsOf(pid: number): Promise<number> {
  const names = await readdir(`/proc/${pid}/fd`)
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  return targets.filter((target) => target.startsWith('socket:')).length
}

const megabytesOf = async (pid: number) =>
  (Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1]) * 1024) / 1e6

test(
  `${SUBSCRIBERS} subscribers of ${CONVERSATIONS} conversations come and go for ${SECONDS} s, seed ${SEED}: none misses or sees twice`,
  { timeout: 3 * PATIENCE_MS + SECONDS * 4000 },
  async () => {
    const env = { OPENHANDS_IDLE_SECONDS: '0.3' }
    await using stage = await setStage({ replies: [{ turns: [{ text: 'Never asked.' }] }] }, { env })
    const { server } = stage
    const conversations = await Promise.all(Array.from({ length: CONVERSATIONS }, () => stage.create()))
    const before = { sockets: await socketsOf(server.pid), megabytes: await megabytesOf(server.pid) }

    const plan = { url: server.url, key: KEY, conversations, subscribers: SUBSCRIBERS, seconds: SECONDS, seed: SEED }
    const { faults, connections, events } = await churn(plan)
    expect(faults.slice(0, 20), `seed ${SEED}`).toEqual([])
    expect(connections).toBeGreaterThan(SUBSCRIBERS)
    expect(events).toBeGreaterThan(SUBSCRIBERS)

    await expect
      .poll(() => streamsIn(server))
      .toEqual(['agent_server_streams{kind="sse"} 0', 'agent_server_streams{kind="websocket"} 0'])
    await expect.poll(() => socketsOf(server.pid)).toBeLessThan(before.sockets + 10)
    const growth = async () => (await megabytesOf(server.pid)) - before.megabytes
    await expect.poll(growth, { interval: 500 }).toBeLessThan(MAX_GROWTH_MB)
  },
)
