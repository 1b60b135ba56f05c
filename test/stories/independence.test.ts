import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { subscribe } from '../support/stream.ts'

test('a conversation whose command hangs does not hold up another one', async () => {
  await using stage = await setStage({
    replies: [
      { when: 'hang', turns: [bash('sleep 1000')] },
      { turns: [...Array.from({ length: 20 }, (_, i) => bash(`echo ${i}`)), { text: 'Done.' }] },
    ],
  })
  const { server } = stage
  const [hanging, working] = [await stage.create(), await stage.create()]
  const stream = await subscribe(server.url, `/conversations/${hanging}/events/stream`)
  await server.call('POST', `/conversations/${hanging}/messages`, {
    message: { role: 'user', content: 'hang' },
    run: true,
  })
  await stream.until(({ event }) => event === 'ToolUse')

  const events = await stage.say(working, 'work')

  expect(events.find((event) => event.type === 'Result')).toMatchObject({ stop_reason: 'completed', steps: 21 })
  expect((await server.call('GET', `/conversations/${hanging}`)).body.status).toBe('running')
  stream.close()
  expect(
    (await server.call('DELETE', `/conversations/${hanging}`)).status,
    'the hanging one can be deleted all the same',
  ).toBe(204)
  expect((await server.call('GET', `/conversations/${hanging}`)).status).toBe(410)
})
