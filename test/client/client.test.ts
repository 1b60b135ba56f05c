/** Calls the API through a client that was generated from its description: the server does what the description says. */
import createClient from 'openapi-fetch'
import { expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { KEY, startServer } from '../support/server.ts'
import type { components, paths } from './generated/api.ts'

type Event = components['schemas']['Event']

test('makes a conversation, lets the agent work, reads what happened, and ends it', async () => {
  await using model = await startScriptedModel([
    { calls: [{ name: 'Bash', arguments: { command: 'echo $((6*7))' } }] },
    { text: 'It is 42.' },
  ])
  await using server = await startServer()
  const api = createClient<paths>({ baseUrl: server.url, headers: { authorization: `Bearer ${KEY}` } })

  const info = await api.GET('/info')
  expect(info.data?.tools).toContain('Bash')

  const made = await api.POST('/conversations', {
    body: { title: 'sum', llm_config: { model: 'scripted', base_url: model.baseUrl, api_key: 'none-needed' } },
    params: { header: { 'idempotency-key': 'once' } },
  })
  const id = made.data!.id
  expect(made.data?.status satisfies components['schemas']['Status'] | undefined).toBe('idle')

  const posted = await api.POST('/conversations/{id}/messages', {
    params: { path: { id } },
    body: { message: { role: 'user', content: 'What is six times seven?' } },
  })
  expect(posted.data?.seq).toBeGreaterThan(1)
  const ran = await api.POST('/conversations/{id}/run', { params: { path: { id } }, body: { wait: true } })
  expect(ran.data && 'result' in ran.data && ran.data.result?.final_text).toBe('It is 42.')

  const events = await api.GET('/conversations/{id}/events', {
    params: { path: { id }, query: { types: ['ToolUse', 'ToolResult'], limit: 10 } },
  })
  expect(events.data?.items.map(tell)).toEqual(['Bash is called', 'it worked'])

  const gone = await api.DELETE('/conversations/{id}', { params: { path: { id } } })
  expect(gone.response.status).toBe(204)
  const missing = await api.GET('/conversations/{id}', { params: { path: { id } } })
  expect(missing.error?.error satisfies components['schemas']['ErrorBody']['error'] | undefined).toBe(
    'conversation_deleted',
  )
})

/** The field `type` distinguishes the events of the union. */
function tell(event: Event): string {
  switch (event.type) {
    case 'ToolUse':
      return `${event.name} is called`
    case 'ToolResult':
      return event.is_error ? 'it failed' : 'it worked'
    default:
      return event.type
  }
}
