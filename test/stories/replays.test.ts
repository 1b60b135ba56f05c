/** Replays on a real server: what a fork cannot reach, and a server that is killed in the middle. */
import * as fs from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import type { Stage } from '../support/agent.ts'
import { until } from '../support/until.ts'

const PRICES = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
const USAGE = { prompt_tokens: 100, completion_tokens: 10 }

const priced = ({ model }: Stage) => ({
  llm_config: { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key', num_retries: 0, ...PRICES },
})

async function ended({ server }: Stage, id: string) {
  return await until('the end of the replay', async () => {
    const { body } = await server.call('GET', `/replays/${id}`)
    return body.status === 'running' ? undefined : body
  })
}

test('a fork that may run everything reaches neither the network nor the directories of its original', async () => {
  let reached = 0
  const outside = createServer((_, response) => {
    reached++
    response.end('reached')
  })
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  const { port } = outside.address() as AddressInfo
  let command = 'echo original'
  const script: Script = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? { text: 'Done.', usage: USAGE } : { ...bash(command), usage: USAGE }
  await using stage = await setStage(script, {})
  const { server } = stage
  const more = join(server.home, 'more')
  fs.mkdirSync(more)
  const id = await stage.create({ ...priced(stage), permission_mode: 'bypass', additional_directories: [more] })
  await stage.say(id, 'go')
  const { workdir } = (await server.call('GET', `/conversations/${id}`)).body
  command = `curl -sS -m 5 http://127.0.0.1:${port}/; echo by-replay >"${workdir}/planted"; echo by-replay >"${more}/planted"; echo by-replay >own`
  const check = { command: `grep -q by-replay own && ! curl -sS -m 5 http://127.0.0.1:${port}/` }
  const request = { conversation_ids: [id], permission_mode: 'bypass', check, max_cost_usd: 1 }
  const posted = await server.call('POST', '/replays', request)
  expect(posted.status, JSON.stringify(posted.body)).toBe(201)
  const [row] = (await ended(stage, posted.body.id)).rows
  expect(row).toMatchObject({ outcome: 'completed', check: { status: 'exited', exit_code: 0 } })
  expect(reached).toBe(0)
  expect(fs.readdirSync(workdir)).toEqual([])
  expect(fs.readdirSync(more)).toEqual([])
  outside.close()
})

test('a replay survives kill -9, makes each fork once, and deletes them all when their time is over', async () => {
  let isHeld = true
  const script: Script = () => (isHeld ? { hang: true, text: 'Hel' } : { text: 'Hello.', usage: USAGE })
  await using stage = await setStage(script, {})
  const { server, model } = stage
  const id = await stage.create({ ...priced(stage), initial_message: 'Go.' })
  const request = { conversation_ids: [id], repeat: 6, max_cost_usd: 1, keep: 0 }
  const { body: posted } = await server.call('POST', '/replays', request)
  await until('four forks that ask', async () => model.requests.length >= 4)
  isHeld = false
  await server.restart('SIGKILL')
  const { rows } = await ended(stage, posted.id)
  expect(rows.map((row: { outcome: string }) => row.outcome)).toEqual(Array.from({ length: 6 }, () => 'completed'))
  await until('no fork', async () => fs.readdirSync(join(server.dataDir, 'sessions')).length === 1)
  expect((await server.call('GET', `/replays/${posted.id}`)).body.rows).toEqual(rows)
})
