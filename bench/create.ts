/** What a durable create costs, compared with a loop that writes and syncs the same files and does nothing else. */
import { mkdir, mkdtemp, open, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 7
const CREATES = 200

type Files = ReadonlyMap<string, Buffer>

export async function benchCreate(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-create-'))
  const { kill } = await startServerProcess(home)
  try {
    await createOne()
    const sessions = join(home, 'data/sessions')
    const files = await filesOf(join(sessions, (await readdir(sessions))[0]!))
    const own: number[] = []
    const bare: number[] = []
    for (let round = 0; round <= ROUNDS; round++) {
      own.push(await perSecond(createOne))
      bare.push(await perSecond(() => writeAll(join(home, 'bare'), files)))
    }
    const [rate, its] = [median(own.slice(1)), median(bare.slice(1))]
    return [
      [
        'conversations made one after the other, each durable',
        `${rate.toFixed(0)}/s`,
        `${(its / rate).toFixed(2)} times as long as writing and syncing the same files (${its.toFixed(0)}/s)`,
      ],
    ]
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function perSecond(make: () => Promise<void>): Promise<number> {
  const began = performance.now()
  for (let i = 0; i < CREATES; i++) await make()
  return (CREATES * 1000) / (performance.now() - began)
}

async function createOne(): Promise<void> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  await send(`${URL}/conversations`, { llm_config })
}

async function filesOf(directory: string): Promise<Files> {
  const names = await readdir(directory)
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(directory, name))] as const)))
}

/** A directory with the files, and one to work in; all of it, the names too, on the disk when this resolves. */
async function writeAll(home: string, files: Files): Promise<void> {
  const id = crypto.randomUUID()
  const session = join(home, 'sessions', id)
  await mkdir(join(home, 'work', id), { recursive: true })
  await mkdir(session, { recursive: true })
  for (const [name, content] of files) {
    await using file = await open(join(session, name), 'wx')
    await file.writeFile(content)
    await file.datasync()
  }
  for (const directory of [session, join(home, 'sessions')]) {
    await using handle = await open(directory, 'r')
    await handle.sync()
  }
}
