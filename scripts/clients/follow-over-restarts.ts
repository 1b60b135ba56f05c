/**
 * Runs the program of examples/clients.md that follows a stream with httpx-sse, while connections are cut and the server is
 * stopped and killed: it must print each event once and in order.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { startCutProxy } from '../../test/support/cut-proxy.ts'
import { postOnce } from '../../test/support/post-once.ts'
import { KEY, startServer } from '../../test/support/server.ts'
import { readProgram } from './page.ts'
import type { Environment } from './toolchains.ts'

const HEADING = 'A stream in Python that survives'
const RUN_MS = 2 * 60_000
const EVENTS_PER_ROUND = 5

/** True if it did. `say` gets a line with the result. */
export async function followOverRestarts(
  env: Environment,
  work: string,
  say: (text: string) => void,
): Promise<boolean> {
  await using server = await startServer({ env: { LLM_MODEL: 'none' } })
  const proxy = await startCutProxy(new URL(server.url))
  const { body } = await server.call('POST', '/conversations', {})
  const id = String(body.id)
  const program = join(work, 'follow.py')
  writeFileSync(program, readProgram(HEADING))
  const following = execa('python', [program, id], {
    env: { ...env, AGENT_SERVER_URL: proxy.url, AGENT_SERVER_KEY: KEY },
    stdin: 'ignore',
    reject: false,
    timeout: RUN_MS,
  })

  let shown = ''
  following.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))

  const names: string[] = []
  for (const disturb of [
    async () => proxy.cut(),
    async () => await server.restart('SIGTERM'),
    async () => await server.restart('SIGKILL'),
    async () => proxy.cut(),
  ]) {
    const more = Array.from({ length: EVENTS_PER_ROUND }, (_, at) => `event-${names.length + at}`)
    names.push(...more)
    await Promise.all([disturb(), postAll(server, id, more)])
  }
  const isOver = async () => await Promise.race([following.then(() => true), sleep(20, false)])
  while (!shown.includes(names.at(-1) ?? '') && !(await isOver()));
  await server.call('DELETE', `/conversations/${id}`)
  const { stderr } = await following
  await proxy.close()

  const frames = shown
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(/ (.*)/, 2))
  const printed = frames.filter(([event]) => event === 'ClientEvent').map(([, data]) => nameIn(data))
  const empty = frames.filter(([, data]) => !data).map(([event]) => event)
  const works =
    printed.join() === names.join() && empty.every((event) => event === 'server_closing' || event === 'deleted')
  say(`Python with httpx-sse, over cut connections and restarts: ${works ? 'works' : `FAILED\n${shown}\n${stderr}`}`)
  return works
}

async function postAll(server: Parameters<typeof postOnce>[0], id: string, names: readonly string[]): Promise<void> {
  for (const name of names) await postOnce(server, id, name)
}

const nameIn = (data: string | undefined) => (JSON.parse(data ?? '') as { name: string }).name
