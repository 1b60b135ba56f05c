/** Uploads and downloads compared with a bare server that streams the same files, and what a very large file costs in memory. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KEY, URL, megabytesOf, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 7
const MEGABYTES = 256
const GIGABYTES = 10
const PIECE = Buffer.alloc(64 * 1024, 'x')
const PIECES = (MEGABYTES * 1e6) / PIECE.length

export async function benchFiles(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-files-'))
  const bare = join(home, 'bare')
  await mkdir(bare)
  const { pid, kill } = await startServerProcess(home)
  const child = fork(join(import.meta.dirname, 'bare-files.ts'), [bare])
  const [bareUrl] = (await once(child, 'message')) as [string]
  try {
    const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
    const { id, workdir } = JSON.parse(await send(`${URL}/conversations`, { llm_config })) as Record<string, string>
    const own = `${URL}/conversations/${id}/files`
    const [up, bareUp] = await enqueue(
      () => timed(() => put(`${own}/f`)),
      () => timed(() => put(`${bareUrl}/f`)),
    )
    const [down, bareDown] = await enqueue(
      () => timed(() => get(`${own}/f`)),
      () => timed(() => get(`${bareUrl}/f`)),
    )
    return [
      row(`upload of ${MEGABYTES} MB, on the disk when it is answered`, up, bareUp),
      row(`download of ${MEGABYTES} MB`, down, bareDown),
      await largeFile(`${own}/large`, join(workdir!, 'large'), pid),
    ]
  } finally {
    child.kill('SIGKILL')
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

function row(what: string, ms: number, bareMs: number): Row {
  const rate = (each: number) => `${((MEGABYTES * 1000) / each).toFixed(0)} MB/s`
  return [what, rate(ms), `${(bareMs / ms).toFixed(2)} of a bare stream's ${rate(bareMs)}`]
}

/** Sends a file without blocks on the disk: what is measured is the server. */
async function largeFile(url: string, path: string, pid: number): Promise<Row> {
  await using file = await open(path, 'w')
  await file.truncate(GIGABYTES * 1e9)
  const before = megabytesOf(pid)
  let most = before
  const timer = setInterval(() => (most = Math.max(most, megabytesOf(pid))), 50)
  const ms = await timed(() => get(url))
  clearInterval(timer)
  return [
    `download of a file of ${GIGABYTES} GB: the most memory that is resident meanwhile`,
    `${most.toFixed(0)} MB`,
    `${before.toFixed(0)} MB before; ${((GIGABYTES * 1e6) / ms).toFixed(0)} MB/s`,
  ]
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** What else the machine does then hits both alike. The first round of each warms up. */
async function enqueue(own: () => Promise<number>, bare: () => Promise<number>): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round <= ROUNDS; round++) {
    times[0].push(await own())
    times[1].push(await bare())
  }
  return [median(times[0].slice(1)), median(times[1].slice(1))]
}

const headers = { authorization: `Bearer ${KEY}` }

async function put(url: string): Promise<void> {
  const request = http.request(url, {
    method: 'PUT',
    agent: false,
    headers: { ...headers, 'content-length': PIECE.length * Math.round(PIECES) },
  })
  const answered = once(request, 'response')
  for (let i = 0; i < Math.round(PIECES); i++) if (!request.write(PIECE)) await once(request, 'drain')
  request.end()
  await drain((await answered) as [IncomingMessage])
}

async function get(url: string): Promise<void> {
  await drain((await once(http.get(url, { agent: false, headers }), 'response')) as [IncomingMessage])
}

async function drain([response]: [IncomingMessage]): Promise<void> {
  if (response.statusCode! >= 300) throw new Error(`${response.statusCode}`)
  response.resume()
  await once(response, 'end')
}
