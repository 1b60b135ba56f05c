/** A client that lost an answer sends its message again, whatever has happened to the server. */
import { expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

test('a message with a client_message_id is one event and one run, also after kill -9 and an orderly restart', async () => {
  await using stage = await setStage([{ text: 'Done.' }])
  const { server } = stage
  const id = await stage.create()
  const post = (fields: object) =>
    server.call('POST', `/conversations/${id}/messages`, {
      message: 'go',
      run: true,
      client_message_id: 'm-1',
      ...fields,
    })
  const first = await post({})
  expect(first.status).toBe(202)
  await until('the end', async () => (await stage.events(id)).some(({ type }) => type === 'Result'))
  const events = await stage.events(id)
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    await server.restart(signal)
    expect(await post({})).toMatchObject({ status: 200, body: first.body })
    expect(await post({ message: 'stop' })).toMatchObject({ status: 409, body: { error: 'message_exists' } })
  }
  expect(await stage.events(id)).toEqual(events)
  const next = await post({ client_message_id: 'm-2' })
  expect(next.status).toBe(202)
  expect(next.body.run_id).not.toBe(first.body.run_id)
})
