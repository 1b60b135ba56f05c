/** What a view shows can be sent back: a client reads the configuration, changes a field, and puts the rest as it was. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ConversationView, CreateConversation, UpdateConfig } from '../../src/contract/conversation.ts'
import { Settings } from '../../src/state/settings.ts'
import { VALUES } from '../support/setting-values.ts'
import { setHttp } from './fixtures.ts'

/** Not in a view: read with the rules, only for the log of the server, or no setting. */
const NOT_SHOWN = ['permission_mode', 'visualize', 'after_seq']

async function anotherIn(directory: string): Promise<string> {
  const path = join(directory, 'more')
  await mkdir(path, { recursive: true })
  return path
}

test('each field of a new conversation that is a setting is kept, and none is forgotten', async () => {
  await using http = await setHttp()
  const workdir = http.bench.workdirBase
  const request: Record<string, unknown> = { ...VALUES, workdir, additional_directories: [await anotherIn(workdir)] }
  const fields = Object.keys(CreateConversation.shape).filter((field) => Object.hasOwn(Settings.shape, field))
  expect(fields.filter((field) => request[field] === undefined)).toEqual([])
  const { state } = await http.bench.manager.open(await http.create(request))
  const settings: Record<string, unknown> = state.settings
  expect(fields.filter((field) => settings[field] === undefined)).toEqual([])
  expect(http.bench.logged.join(''), 'visualize writes the events to the log').toMatch(/conversation \S+ in /)
})

test('each field of a view changes nothing if it is sent back, also masked', async () => {
  await using http = await setHttp()
  const workdir = http.bench.workdirBase
  const id = await http.create({ ...VALUES, workdir, additional_directories: [await anotherIn(workdir)] })
  await http.call('PUT', `/conversations/${id}/config`, { archived: true })
  const { body: view } = await http.call('GET', `/conversations/${id}`)
  const fields = Object.keys(UpdateConfig.shape).filter((field) => !NOT_SHOWN.includes(field))
  expect(fields.filter((field) => !Object.hasOwn(ConversationView.shape, field))).toEqual([])
  expect(fields.filter((field) => view[field] === undefined)).toEqual([])
  const shown = Object.fromEntries(fields.map((field) => [field, view[field]]))
  const put = await http.call('PUT', `/conversations/${id}/config`, { ...shown, title: 'changed' })
  expect(put.status, put.text).toBe(200)
  const { body: after } = await http.call('GET', `/conversations/${id}`)
  expect(Object.fromEntries(fields.map((field) => [field, after[field]]))).toEqual({ ...shown, title: 'changed' })
  const { body: events } = await http.call('GET', `/conversations/${id}/events?types=ConfigUpdate`)
  expect(events.items.at(-1).changes.dropped).toBeUndefined()
})

test('rules can be sent back with those of the project, which stay', async () => {
  await using http = await setHttp()
  const url = `/conversations/${await http.create()}/permission-rules`
  const none = { allow: [], ask: [], deny: [] }
  const { status, body } = await http.call('PUT', url, {
    ...none,
    deny: ['Bash(rm:*)'],
    project: { deny: ['Bash(ls)'] },
  })
  expect([status, body]).toEqual([200, { ...none, deny: ['Bash(rm:*)'] }])
})
