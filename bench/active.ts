/** What a server with many active conversations needs: memory, descriptors and threads, and what a running shell adds. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mapBounded } from '../src/lib/map-bounded.ts'
import { startModel } from './model-process.ts'
import { KEY, URL, megabytesOf, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

/** Each with a run whose answer is being streamed to it, and a subscriber who reads that. */
const CONVERSATIONS = 1000
const SHELLS = 50
const AT_A_TIME = 8
const LOOKS = 5
const LOOK_MS = 1000
/** A piece of text a second, for longer than the measurement takes. */
const ANSWER = { pieces: 600, gapMs: 1000 }

export async function benchActive(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-active-'))
  await using model = await startModel()
  const { pid, kill } = await startServerProcess(home, { OPENHANDS_MAX_CONCURRENT_RUNS: String(2 * CONVERSATIONS) })
  try {
    const start = (count: number, plan: object) =>
      mapBounded(Array.from({ length: count }), AT_A_TIME, () => startOne(model.url, plan))
    const atRest = await needs(pid)
    await start(CONVERSATIONS, ANSWER)
    const active = await needs(pid)
    await start(SHELLS, { ...ANSWER, steps: 1 })
    const withShells = await needs(pid)
    const each = (field: keyof Needs) => (withShells[field] - active[field]) / SHELLS
    const growth = (active.megabytes - atRest.megabytes) * 1000
    return [
      [
        `memory with ${CONVERSATIONS.toLocaleString('en')} active conversations, each with a subscriber`,
        `${active.megabytes.toFixed(0)} MB`,
        `${(growth / CONVERSATIONS).toFixed(0)} KB each; ${atRest.megabytes.toFixed(0)} MB before`,
      ],
      [
        'descriptors and threads then',
        `${active.descriptors}, ${active.threads}`,
        `${atRest.descriptors}, ${atRest.threads} before`,
      ],
      [
        `a conversation with a running shell, of ${SHELLS}`,
        `${(each('megabytes') * 1000).toFixed(0)} KB, ${each('descriptors').toFixed(1)} descriptors`,
        `${each('shellKilobytes').toFixed(0)} KB in ${each('processes').toFixed(1)} own processes`,
      ],
    ]
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Resolves when the first text of its answer has come. */
async function startOne(base_url: string, plan: object): Promise<void> {
  const llm_config = { model: 'bench', base_url, api_key: 'bench-model-key' }
  const { id } = JSON.parse(await send(`${URL}/conversations`, { llm_config, tools: ['Bash'] })) as { id: string }
  const path = `${URL}/conversations/${id}/events/stream?deltas=true&types=AssistantDelta`
  const request = http.get(path, { agent: false, headers: { authorization: `Bearer ${KEY}` } })
  // The server is killed under it.
  request.on('error', () => {})
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  const message = { role: 'user', content: JSON.stringify(plan) }
  await send(`${URL}/conversations/${id}/messages`, { message, run: true })
  await new Promise<void>((resolve) =>
    response.on('data', (bytes: Buffer) => bytes.includes('text_delta') && resolve()),
  )
}

type Needs = {
  readonly megabytes: number
  readonly descriptors: number
  readonly threads: number
  readonly processes: number
  /** The memory of the processes below it, shared pages in parts. */
  readonly shellKilobytes: number
}

/** The median of some looks. */
async function needs(pid: number): Promise<Needs> {
  const all: Needs[] = []
  for (let look = 0; look < LOOKS; look++) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    const below = descendants(pid)
    const shellKilobytes = below.reduce((sum, each) => sum + numberIn(`/proc/${each}/smaps_rollup`, 'Pss'), 0)
    all.push({
      megabytes: megabytesOf(pid),
      descriptors: (await readdir(`/proc/${pid}/fd`)).length,
      threads: numberIn(`/proc/${pid}/status`, 'Threads'),
      processes: below.length,
      shellKilobytes,
    })
  }
  const middle = (field: keyof Needs) => median(all.map((one) => one[field]))
  return {
    megabytes: middle('megabytes'),
    descriptors: middle('descriptors'),
    threads: middle('threads'),
    processes: middle('processes'),
    shellKilobytes: middle('shellKilobytes'),
  }
}

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [...children, ...children.flatMap(descendants)]
}

const numberIn = (path: string, name: string) =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? 0)
