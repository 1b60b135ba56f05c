/** How much memory `query()` takes in a program: the server in its process, a long session, and one more message. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SdkMeasured } from './sdk-process.ts'
import { startModel } from './model-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 3
const SESSION_EVENTS = 10_000
/** The memory of the program with its session, above that of an empty Node process. */
const TARGET_MB = 150

export async function benchSdk(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-sdk-'))
  await using model = await startModel()
  try {
    const all: SdkMeasured[] = []
    for (let round = 0; round < ROUNDS; round++) all.push(await measure(join(home, String(round)), model.url))
    const grown = median(all.map(({ grownMb }) => grownMb))
    const reading = median(all.map(({ readingMb }) => readingMb))
    const ms = median(all.map(({ firstEventMs }) => firstEventMs))
    return [
      [
        `memory of a program with \`query()\` over a session of ${SESSION_EVENTS} events, above an empty process`,
        `${grown.toFixed(0)} MB`,
        `${(grown / TARGET_MB).toFixed(2)} of ${TARGET_MB} MB`,
      ],
      ['memory that reading all of its events adds', `${reading.toFixed(0)} MB`, ''],
      ['from `query()` in a new process to its first event', `${ms.toFixed(0)} ms`, ''],
    ]
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function measure(dataDir: string, modelUrl: string): Promise<SdkMeasured> {
  const program = join(import.meta.dirname, 'sdk-process.ts')
  const args = [dataDir, modelUrl, String(SESSION_EVENTS)]
  await promisify(execFile)(process.execPath, [program, 'fill', ...args])
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'measure', ...args])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own program writes it
  return JSON.parse(stdout) as SdkMeasured
}
