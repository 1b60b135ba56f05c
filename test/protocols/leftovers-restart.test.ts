/** Conversations that were to go with their answer, and whose server was killed before it. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { LOOK_UP } from '../support/chat-completions.ts'
import { hasFiles, KEY } from '../support/server.ts'

const stage = await setStage(({ body: { messages } }) => {
  if (JSON.stringify(messages.at(-1)).includes('slowly')) return { text: 'and so on '.repeat(300), chunk_delay_ms: 100 }
  if (JSON.stringify(messages.at(-1)).includes('look up')) return { calls: [{ name: 'look_up', arguments: {} }] }
  return { text: 'Well.' }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

async function idsNow(): Promise<string[]> {
  const { items } = (await server.call('GET', '/conversations?limit=100')).body
  return items.map(({ id }: { id: string }) => id)
}

/** Begins an answer whose connection is still open. */
async function begin(path: string, body: object): Promise<string> {
  const before = await idsNow()
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const sent = JSON.stringify({ model: 'default', stream: true, ...body })
  const response = await fetch(`${server.url}/v1/${path}`, { method: 'POST', headers, body: sent })
  expect(response.status).toBe(200)
  void response.text().catch(() => {})
  return (await idsNow()).find((id) => !before.includes(id))!
}

/** Has everything in the log happened two days ago. */
async function age(id: string): Promise<void> {
  const directory = join(server.dataDir, 'sessions', id)
  const twoDaysAgo = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000).toISOString()
  for (const name of await readdir(directory)) {
    if (!/\.jsonl?$/.test(name)) continue
    const text = await readFile(join(directory, name), 'utf8')
    await writeFile(join(directory, name), text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, twoDaysAgo))
  }
}

test.runIf(hasFiles)('a server removes them at its start, when they are a day old, and no others', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await server.call('PUT', '/profiles/default', { llm_config })
  const chat = await begin('chat/completions', { messages: [{ role: 'user', content: 'slowly' }] })
  const unstored = await begin('responses', { input: 'slowly', store: false })
  const stored = await begin('responses', { input: 'slowly' })
  const continued = await begin('responses', { input: 'slowly', store: false })
  const tools = [{ type: 'function', ...LOOK_UP.function }]
  const waiting = await begin('responses', { input: 'look up', store: false, tools })
  await expect.poll(async () => (await server.call('GET', `/conversations/${waiting}`)).body.status).toMatch(/waiting/)
  const all = [chat, unstored, stored, continued, waiting]
  await server.restart('SIGKILL')
  await stage.say(continued, 'This is for me.')
  expect(await idsNow()).toEqual(expect.arrayContaining(all))
  await server.stop()
  for (const id of all) await age(id)
  await server.restart()
  await expect
    .poll(async () => (await idsNow()).filter((id) => all.includes(id)).toSorted())
    .toEqual([stored, continued, waiting].toSorted())
})
