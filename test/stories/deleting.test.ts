/** What a conversation owned, whatever it was, is gone with it: files in the data directory, workdirs and processes. */
import { readdir } from 'node:fs/promises'
import { afterAll, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'
import { effort } from '../support/patience.ts'
import { createRandom } from '../support/random.ts'

const script: Script = ({ messages }) =>
  messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : bash('seq 100000; export A=1; (sleep 1000 &); echo x > made')

const stage = await setStage(script, {
  env: { OPENHANDS_ISOLATION: 'none', OPENHANDS_CALLBACK_ALLOW: '127.0.0.1', OPENHANDS_MCP_ALLOW: '127.0.0.1' },
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

async function call(...request: Parameters<typeof server.call>) {
  const [method, path] = request
  const { status, body: answer } = await server.call(...request)
  expect(status, `${method} ${path}: ${JSON.stringify(answer)}`).toBeLessThan(400)
  return answer
}

/** Nobody listens there: what is delivered fails. */
const NOWHERE = 'http://127.0.0.1:9'

/** What a conversation can own. Each returns the ids of further conversations that it has made. */
const KINDS: Record<string, (at: string, id: string) => Promise<string[] | void>> = {
  run: async (_, id) => void (await stage.say(id, 'work')),
  'a run that works': (at) => call('POST', `${at}/messages`, { message: { role: 'user', content: 'hi' }, run: true }),
  task: (at) => call('POST', `${at}/tasks`, { title: 'a', runnable: { type: 'Command', command: 'sleep 1000' } }),
  command: (at) =>
    call('POST', `${at}/commands`, { command: 'seq 10000; export B=2; (sleep 1000 &)', session_id: 'own' }),
  'keyed command': (at) =>
    call('POST', `${at}/commands`, { command: 'sleep 1000', background: true }, { 'idempotency-key': 'key' }),
  secret: (at) => call('PUT', `${at}/secrets`, { secrets: { TOKEN: 'hunter2-hunter2' } }),
  callback: (at) => call('POST', `${at}/callbacks`, { url: `${NOWHERE}/hook` }),
  mcp: (at) => call('PUT', `${at}/config`, { mcp: { mcpServers: { far: { type: 'http', url: `${NOWHERE}/mcp` } } } }),
  rules: (at) => call('PUT', `${at}/permission-rules`, { deny: ['Bash(rm:*)'] }),
  hooks: (at) => call('PUT', `${at}/client-hooks/me`, { hooks: {} }),
  directory: (at) => call('POST', `${at}/dirs/a/b`),
  file: (at) => call('PUT', `${at}/files/c/file`, 'text', { 'content-type': 'application/octet-stream' }),
  fork: async (at) => [(await call('POST', `${at}/fork`, {})).id],
  'fork into the same workdir': async (at) => [(await call('POST', `${at}/fork`, { workdir: 'share' })).id],
  guest: async (at) => [await stage.create({ workdir: `${(await call('GET', at)).workdir}/inner` })],
}

const listing = async () => (await readdir(server.dataDir, { recursive: true })).filter(isLasting).toSorted(compare)
/** What is made when it is needed; what deleted conversations have cost stays. */
const isLasting = (name: string) => !/^(?:local.*|unfinished|usage\.db.*)$/.test(name)
const compare = (a: string, b: string) => (a < b ? -1 : 1)

test.each(Array.from({ length: effort(1, 50) }, (_, at) => at))('seed %i', async (seed) => {
  const random = createRandom(seed)
  await call('DELETE', `/conversations/${await stage.create()}`)
  const before = await listing()
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await stage.create())
  const kinds = Object.entries(KINDS).flatMap((kind) => [kind, kind])
  while (kinds.length > 0) {
    const [[, own]] = kinds.splice(random.below(kinds.length), 1) as [[string, (typeof KINDS)[string]]]
    const id = random.pick(ids)
    const made = await own(`/conversations/${id}`, id)
    if (Array.isArray(made)) ids.push(...made)
  }
  const all = [...ids]
  while (ids.length > 0) {
    const [id] = ids.splice(random.below(ids.length), 1)
    await call('DELETE', `/conversations/${id}`)
  }
  expect(await listing()).toEqual(before)
  expect(all.flatMap((id) => markedProcesses(id))).toEqual([])
  await server.restart()
  expect(await listing()).toEqual(before)
})
