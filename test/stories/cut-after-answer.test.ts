/** A kill between the last answer of a run and its end: the run gets its `Result`, and the model nothing more to do. */
import { hasFiles } from '../support/server.ts'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import type { Stage } from '../support/agent.ts'
import { until } from '../support/until.ts'

let stage: Stage
beforeAll(async () => {
  stage = await setStage(({ text }) =>
    text.includes('finish it')
      ? { calls: [{ name: 'Finish', arguments: { message: 'All done.' } }] }
      : { text: '{"n": 1}' },
  )
})
afterAll(() => stage[Symbol.asyncDispose]())

/** As if the kill had come before the end was stored. */
async function cutEnd(id: string): Promise<void> {
  const directory = join(stage.server.dataDir, 'sessions', id)
  const path = join(directory, 'events.jsonl')
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  expect(lines.slice(-2).map((line) => JSON.parse(line).type)).toEqual(['Result', 'StatusUpdate'])
  await writeFile(path, `${lines.slice(0, -2).join('\n')}\n`)
  await rm(join(directory, 'meta.json'), { force: true })
}

test.runIf(hasFiles)('is ended by the next start, or by the next run if hooks or a schema have a say', async () => {
  const { server, create, say, events, model } = stage
  const counting = 'cat >> "$CLAUDE_PROJECT_DIR/stops"; exit 0'
  const kinds = {
    plain: await create({}),
    finished: await create({ tools: ['Finish'] }),
    hooked: await create({ hooks: { Stop: [{ hooks: [{ type: 'command', command: counting }] }] } }),
    shaped: await create({ output_schema: { type: 'object', required: ['n'] } }),
  }
  await Promise.all(Object.entries(kinds).map(([kind, id]) => say(id, kind === 'finished' ? 'finish it' : kind)))
  const asked = model.requests.length
  await server.stop('SIGKILL')
  await Promise.all(Object.values(kinds).map(cutEnd))
  await server.restart()
  const endOf = async (id: string) => (await events(id)).findLast(({ type }) => type === 'Result')
  const viewOf = async (id: string) => (await server.call('GET', `/conversations/${id}`)).body
  expect(await endOf(kinds.plain)).toMatchObject({ stop_reason: 'completed', final_text: '{"n": 1}', steps: 1 })
  expect(await endOf(kinds.finished)).toMatchObject({ stop_reason: 'finished', final_text: 'All done.' })
  expect((await viewOf(kinds.plain)).status).toBe('idle')
  for (const id of [kinds.hooked, kinds.shaped]) {
    expect(await endOf(id)).toMatchObject({ stop_reason: 'server_restart' })
    expect((await server.call('POST', `/conversations/${id}/run`, {})).status).toBe(202)
    await until('the run ends', async () => (await viewOf(id)).status === 'idle')
    expect(await endOf(id)).toMatchObject({ stop_reason: 'completed', final_text: '{"n": 1}', steps: 0 })
  }
  expect(await endOf(kinds.shaped)).toMatchObject({ structured_output: { n: 1 } })
  const stops = await readFile(join((await viewOf(kinds.hooked)).workdir, 'stops'), 'utf8')
  expect(stops.split('"last_assistant_message":"{\\"n\\": 1}"')).toHaveLength(3)
  expect(model.requests).toHaveLength(asked)
})
