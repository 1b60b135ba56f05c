/** What each network mode costs: the start of a sandboxed shell, a command in one that runs, and a request through the proxy. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const MODES = ['open', 'none', 'allowlist'] as const
type Mode = (typeof MODES)[number]
/** One conversation may have one shell more. */
const SHELLS = 15
const COMMANDS = 100
const REQUESTS = 50

export async function benchNetwork(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-network-'))
  const web = createServer((_, response) => response.end('hello'))
  await once(web.listen(0, '127.0.0.1'), 'listening')
  const { port } = web.address() as AddressInfo // of a TCP port
  const { kill } = await startServerProcess(home, {
    OPENHANDS_ISOLATION: 'bubblewrap',
    OPENHANDS_NETWORK_PRIVATE_ALLOW: `web.test=127.0.0.1:${port}`,
  })
  try {
    const ids = new Map<Mode, string>()
    for (const mode of MODES) ids.set(mode, await createConversation(mode, port))
    const starts = await enqueue(SHELLS, (mode, round) => run(ids.get(mode)!, 'true', `shell-${round}`))
    const commands = await enqueue(COMMANDS, (mode) => run(ids.get(mode)!, 'true', 'shell-0'))
    const direct = await requests(ids.get('open')!, `http://127.0.0.1:${port}/`)
    const proxied = await requests(ids.get('allowlist')!, `http://web.test:${port}/`)
    return [
      ...rowsOf('start of a sandboxed shell, with its first command', starts, 1),
      ...rowsOf('a command in a shell that runs', commands, 2),
      [
        'a request by curl through the network proxy',
        `${proxied.toFixed(2)} ms`,
        `${(proxied / direct).toFixed(2)} of a direct one's ${direct.toFixed(2)} ms`,
      ],
    ]
  } finally {
    await kill()
    web.close()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

type Times = Readonly<Record<Mode, number[]>>

/** Measures the modes one after the other in each round: what else the machine does then hits all modes alike. */
async function enqueue(rounds: number, work: (mode: Mode, round: number) => Promise<void>): Promise<Times> {
  const times: Times = { open: [], none: [], allowlist: [] }
  for (let round = 0; round < rounds; round++) {
    for (const mode of MODES) {
      const began = performance.now()
      await work(mode, round)
      times[mode].push(performance.now() - began)
    }
  }
  return times
}

function rowsOf(what: string, times: Times, digits: number): Row[] {
  const open = median(times.open)
  return MODES.map((mode) => {
    const ms = median(times[mode])
    const ratio = mode === 'open' ? '' : `${(ms / open).toFixed(2)} of the mode open`
    return [`${what}: network mode ${mode}`, `${ms.toFixed(digits)} ms`, ratio]
  })
}

/** Milliseconds of one; all of them are one command, so that its own cost hardly counts. */
async function requests(id: string, url: string): Promise<number> {
  const began = performance.now()
  await run(id, `for i in $(seq ${REQUESTS}); do curl -sSf -o /dev/null ${url}; done`, 'shell-0')
  return (performance.now() - began) / REQUESTS
}

async function run(id: string, command: string, session_id: string): Promise<void> {
  const answer = await send(`${URL}/conversations/${id}/commands`, { command, session_id })
  if (!answer.includes('"exit_code":0,')) throw new Error(`${command}: ${answer}`)
}

async function createConversation(mode: Mode, port: number): Promise<string> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  const network = { mode, ...(mode === 'allowlist' && { allow: [`web.test:${port}`] }) }
  return (JSON.parse(await send(`${URL}/conversations`, { llm_config, network })) as { id: string }).id
}
