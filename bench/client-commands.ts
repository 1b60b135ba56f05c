/** What a command through the API takes, compared with a bare `bash -c` of the same. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 7
const COMMANDS = 100
const COMMAND = 'echo hello'

export async function benchCommands(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-commands-'))
  const { kill } = await startServerProcess(home)
  try {
    const id = await createConversation()
    const apiCommand = async () => void (await send(`${URL}/conversations/${id}/commands`, { command: COMMAND }))
    const own: number[] = []
    const bare: number[] = []
    for (let round = 0; round <= ROUNDS; round++) {
      own.push(await msEach(apiCommand))
      bare.push(await msEach(bashCommand))
    }
    const [ms, its] = [median(own.slice(1)), median(bare.slice(1))]
    return [
      [
        'command through the API: its record, result and event stored',
        `${ms.toFixed(2)} ms`,
        `${(ms / its).toFixed(2)} times a bare \`bash -c\` (${its.toFixed(2)} ms)`,
      ],
    ]
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function msEach(run: () => Promise<void>): Promise<number> {
  const began = performance.now()
  for (let i = 0; i < COMMANDS; i++) await run()
  return (performance.now() - began) / COMMANDS
}

async function createConversation(): Promise<string> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  return (JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }).id
}

/** All of its output read, as a client would. */
async function bashCommand(): Promise<void> {
  const child = spawn('bash', ['-c', COMMAND], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.resume()
  child.stderr.resume()
  await once(child, 'close')
}
