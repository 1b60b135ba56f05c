/** What resource limits cost: the start of a sandboxed shell and a command in one that runs, without limits and with all of them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

/** One conversation may have one shell more. */
const SHELLS = 15
const COMMANDS = 100
const SETTINGS = {
  none: { MEMORY: 'none', PROCESSES: 'none', CPU: 'none', DISK: 'none' },
  'by default': {},
  'all of them': { MEMORY: '1G', PROCESSES: '500', CPU: '2', DISK: '1G' },
}

export async function benchLimits(): Promise<Row[]> {
  const rows: Row[] = []
  let bare: Times | undefined
  for (const [name, limits] of Object.entries(SETTINGS)) {
    const times = await measure(limits)
    bare ??= times
    if (times !== bare) rows.push(rowOf('start of a sandboxed shell', name, times.start, bare.start))
    if (times !== bare) rows.push(rowOf('a command in a shell that runs', name, times.command, bare.command))
  }
  return rows
}

type Times = { readonly start: number; readonly command: number }

async function measure(limits: Readonly<Record<string, string>>): Promise<Times> {
  const home = await mkdtemp(join(tmpdir(), 'bench-limits-'))
  const settings = Object.entries(limits).map(([name, value]) => [`OPENHANDS_LIMIT_${name}`, value])
  const { kill } = await startServerProcess(home, {
    OPENHANDS_ISOLATION: 'bubblewrap',
    ...Object.fromEntries(settings),
  })
  try {
    const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
    const { id } = JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }
    const run = async (session_id: string) =>
      void (await send(`${URL}/conversations/${id}/commands`, { command: 'echo hello', session_id }))
    const start = await times(SHELLS, (round) => run(`shell-${round}`))
    return { start, command: await times(COMMANDS, () => run('shell-0')) }
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** The median, milliseconds. */
async function times(rounds: number, work: (round: number) => Promise<void>): Promise<number> {
  const all: number[] = []
  for (let round = 0; round < rounds; round++) {
    const began = performance.now()
    await work(round)
    all.push(performance.now() - began)
  }
  return median(all)
}

const rowOf = (what: string, limits: string, ms: number, bare: number): Row => [
  `${what}, resource limits: ${limits}`,
  `${ms.toFixed(2)} ms`,
  `${(ms / bare).toFixed(2)} of ${bare.toFixed(2)} ms without`,
]
