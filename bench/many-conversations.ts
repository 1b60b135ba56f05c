/** A data directory with as many conversations as are asked for: copies of one that the server created, each with a separate id. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { uuid7 } from '../src/lib/uuid7.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'

/** Each of another second, so that lists have an order to find. */
const SECOND_MS = 1000

/** The server must not run. */
export async function fillWithConversations(home: string, count: number): Promise<void> {
  const server = await startServerProcess(home)
  const send = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const response = await fetch(`${URL}${path}`, { method, headers, body: JSON.stringify(body) })
    return (await response.json()) as { readonly id: string }
  }
  const initial_message = { role: 'user', content: 'Add up the second column.' }
  const { id: created } = await send('POST', '/conversations', { llm_config: { model: 'none' }, initial_message })
  // A change, because `meta.json` is written after the first one.
  await send('PUT', `/conversations/${created}/config`, { title: 'Second column' })
  const sessions = join(home, 'data/sessions')
  const [first] = await readdir(sessions)
  const read = (name: string) => readFile(join(sessions, first!, name), 'utf8')
  // `meta.json` comes shortly after the answer.
  while (!(await readdir(join(sessions, first!))).includes('meta.json')) await sleep(10)
  await server.kill('SIGTERM')
  const [meta, events] = [await read('meta.json'), await read('events.jsonl')]
  const { createdAt, updatedAt } = JSON.parse(meta) as { createdAt: string; updatedAt: string }
  for (let i = 1; i < count; i++) {
    const ms = Date.parse(createdAt) - i * SECOND_MS
    const [id, at] = [uuid7(ms), new Date(ms).toISOString()]
    const copy = (text: string) => text.replaceAll(first!, id).replaceAll(createdAt, at).replaceAll(updatedAt, at)
    // These calls need no pool of threads in between: it is many small files.
    mkdirSync(join(sessions, id))
    writeFileSync(join(sessions, id, 'meta.json'), copy(meta))
    writeFileSync(join(sessions, id, 'events.jsonl'), copy(events))
  }
}
