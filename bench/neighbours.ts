/** What a conversation that takes all it can get costs another one: a command of the neighbour and `/alive`, before and meanwhile. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KEY, URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 25
/** Long enough that all rounds take place while it runs. */
const SECONDS = 8
const BOMBS = {
  'a fork bomb': `:(){ :|:& };: ; sleep ${SECONDS}`,
  'a memory bomb': `for i in $(seq 30); do { head -c 40M /dev/zero; sleep ${SECONDS}; } | tail | wc -c & done; wait`,
  'a disk filler': `for i in $(seq 1000); do head -c 1M /dev/zero > part-$i; done; sleep ${SECONDS}`,
  '50 endless loops': `for i in $(seq 50); do timeout ${SECONDS} sh -c "while :; do :; done" & done; wait`,
}
/** Small, so that each bomb meets its limit at once. */
const LIMITS = { OPENHANDS_LIMIT_MEMORY: '200M', OPENHANDS_LIMIT_PROCESSES: '60', OPENHANDS_LIMIT_DISK: '64M' }

export async function benchNeighbours(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-neighbours-'))
  const { kill } = await startServerProcess(home, { OPENHANDS_ISOLATION: 'bubblewrap', ...LIMITS })
  try {
    const neighbour = await createConversation()
    const rows: Row[] = []
    for (const [name, bomb] of Object.entries(BOMBS)) {
      const hostile = await createConversation()
      await run(hostile, 'true')
      const before = await measure(neighbour)
      const bombing = run(hostile, bomb)
      const meanwhile = await measure(neighbour)
      rows.push([
        `a command next to a conversation with ${name}; \`/alive\` meanwhile`,
        `${meanwhile.command.toFixed(1)} ms; ${meanwhile.alive.toFixed(2)} ms`,
        `${ratio(meanwhile.command, before.command)} and ${ratio(meanwhile.alive, before.alive)} of what they take alone`,
      ])
      await fetch(`${URL}/conversations/${hostile}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${KEY}` },
      })
      await bombing.catch(() => undefined) // it ends with its conversation
    }
    return rows
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

type Times = { readonly command: number; readonly alive: number }

/** Medians, milliseconds. */
async function measure(id: string): Promise<Times> {
  const times: { command: number[]; alive: number[] } = { command: [], alive: [] }
  for (let round = 0; round < ROUNDS; round++) {
    times.command.push(await timeOf(() => run(id, 'seq 1000 | sort | tail -1')))
    times.alive.push(await timeOf(async () => void (await (await fetch(`${URL}/alive`)).text())))
  }
  return { command: median(times.command), alive: median(times.alive) }
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const ratio = (own: number, its: number) => (own / its).toFixed(2)

const run = (id: string, command: string) => send(`${URL}/conversations/${id}/commands`, { command, timeout: 60 })

async function createConversation(): Promise<string> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  return (JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }).id
}
