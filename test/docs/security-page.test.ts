/** The program for browsers on docs/security.md: it follows the events over a restart of the server, with tickets. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EventSource } from 'eventsource'
import { expect, test } from 'vitest'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import { setStage } from '../support/agent.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/security.md'), 'utf8')

type Follow = (conversationId: string) => Promise<void>

test('the program shows each message once, with a new ticket for each connection', async () => {
  const [, program] = /^```js\n(.*?)^```$/ms.exec(page)!
  await using stage = await setStage([{ text: 'One.' }, { text: 'Two.' }])
  const { server } = stage
  const shown: EventOf<'UserMessage'>[] = []
  const sources: EventSource[] = []
  const tickets = async (path: string) => {
    const conversation_id = new URL(path, server.url).searchParams.get('conversation')
    const { status, body } = await server.call('POST', '/stream-tickets', { conversation_id })
    return { ok: status === 201, json: () => Promise.resolve(body) }
  }
  class KeptSource extends EventSource {
    constructor(url: string) {
      super(url)
      sources.push(this)
    }
  }
  // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion -- the program of the page
  const create = new Function('fetch', 'EventSource', 'AGENT_SERVER', 'show', `${program}; return follow`)
  const follow: Follow = create(tickets, KeptSource, server.url, (event: Event) =>
    shown.push(event as EventOf<'UserMessage'>),
  )
  const id = await stage.create()
  await follow(id)
  await stage.say(id, 'first')
  await expect.poll(() => shown.length).toBe(1)
  await server.restart('SIGKILL')
  await stage.say(id, 'second')
  await expect.poll(() => shown.length).toBe(2)
  for (const source of sources) source.close()
  expect(shown.map(({ content }) => content)).toEqual([
    [{ type: 'text', text: 'first' }],
    [{ type: 'text', text: 'second' }],
  ])
})
