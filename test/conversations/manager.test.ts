import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  CountConversations,
  CreateConversation,
  ForkConversation,
  ListConversations,
  UpdateConfig,
} from '../../src/contract/conversation.ts'
import { readSnapshot, writeSnapshot } from '../../src/state/snapshot.ts'
import type { ConversationManager } from '../../src/conversations/manager.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import type { EventStore } from '../../src/events/event-store.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Bench, BenchLogs } from './fixtures.ts'
import {
  MODEL_KEY,
  call,
  endOf,
  eventsOf,
  gate,
  only,
  openStorage,
  say,
  setBench,
  tool,
  until,
  userText,
} from './fixtures.ts'
import { folded } from './events.ts'
import { recordOpenedLogs } from './opened-logs.ts'
import { longEnough } from '../support/long-enough.ts'

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

const list = (manager: ConversationManager, query: object = {}) => manager.list(ListConversations.parse(query))

/** Every id, page by page. */
async function allIds(manager: ConversationManager, query: object = {}, between = async () => {}): Promise<string[]> {
  const ids: string[] = []
  for (let page_id: string | undefined; ;) {
    const page = await list(manager, { ...query, ...(page_id !== undefined && { page_id }) })
    ids.push(...page.items.map((item) => item.id))
    if (page.next_page_id === null) return ids
    page_id = page.next_page_id
    await between()
  }
}

describe('creating', () => {
  test('makes a separate working directory, and returns everything except the key', async () => {
    await using bench = await setBench()
    const id = await bench.create({ title: 'One', metadata: { a: 1 } })
    const view = await bench.view(id)
    expect(view).toMatchObject({
      id,
      title: 'One',
      metadata: { a: 1 },
      workdir: join(bench.workdirBase, id),
      status: 'idle',
      last_seq: 1,
      llm_config: { api_key: '**********' },
    })
    expect((await stat(view.workdir)).isDirectory()).toBe(true)
  })

  test('an existing id is refused, and a deleted id cannot be used again', async () => {
    await using bench = await setBench()
    const id = uuid7()
    await bench.create({ id })
    await expect(bench.create({ id })).rejects.toMatchObject({ code: 'conversation_exists' })
    await bench.manager.delete(id)
    await expect(bench.create({ id })).rejects.toMatchObject({ code: 'conversation_deleted' })
    await bench.restart()
    await expect(bench.create({ id })).rejects.toMatchObject({ code: 'conversation_deleted' })
    await expect(bench.manager.open(id)).rejects.toMatchObject({ code: 'conversation_deleted' })
  })

  test('one of ten concurrent requests with one id creates it', async () => {
    await using bench = await setBench()
    const id = uuid7()
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => bench.create({ id })))
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1)
    expect(await list(bench.manager)).toMatchObject({ items: [{ id }] })
    await say(await bench.manager.open(id))
  })

  test('existing data at its place is never touched', async () => {
    await using bench = await setBench()
    const id = uuid7()
    await mkdir(bench.sessionOf(id))
    await writeFile(join(bench.sessionOf(id), 'events.jsonl'), 'restored by hand')
    await expect(bench.create({ id })).rejects.toMatchObject({ code: 'conversation_exists' })
    expect(await readFile(join(bench.sessionOf(id), 'events.jsonl'), 'utf8')).toBe('restored by hand')
  })

  test.each([
    ['a tool there is none of', { tools: ['Teleport'] }, 'invalid_request'],
    ['no model', { llm_config: {} }, 'invalid_request'],
    ['a masked key', { llm_config: { model: 'm', api_key: '**********' } }, 'invalid_request'],
    ['an unknown field of llm_config', { llm_config: { model: 'm', api_kee: 'x' } }, 'invalid_request'],
    ['a workdir that leaves the base', { workdir: '../elsewhere' }, 'unsafe_path'],
  ])('with %s leaves nothing behind', async (_, fields, code) => {
    await using bench = await setBench()
    await expect(bench.create(fields)).rejects.toMatchObject({ code })
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([])
    expect(await readdir(bench.workdirBase).catch(() => [])).toEqual([])
    expect(bench.manager.count({}).count).toBe(0)
  })

  test('that cannot be stored leaves nothing behind, and the id can be used again', async () => {
    let isFull = true
    const full = (store: EventStore): EventStore => ({
      ...store,
      async create(...args) {
        const log = await store.create(...args)
        if (isFull) log.append = () => Promise.reject(new Problem('storage_full', 'There is no room.'))
        return log
      },
    })
    const home = { directory: '' }
    const lazy: BenchLogs = {
      home,
      create: (...args) => full(createJsonlStore(home)).create(...args),
      copy: (...args) => createJsonlStore(home).copy(...args),
      open: (id) => createJsonlStore(home).open(id),
      delete: (id) => createJsonlStore(home).delete(id),
    }
    const logs: EventLog[] = []
    await using bench = await setBench({ logs: lazy, deps: { onLogOpened: (log) => void logs.push(log) } })
    const id = uuid7()
    await expect(bench.create({ id })).rejects.toMatchObject({ code: 'storage_full' })
    expect(
      logs.map(({ ended }) => ended),
      'its log ends for those that it was opened for',
    ).toEqual(['deleted'])
    expect(await readdir(home.directory)).toEqual([])
    expect(await readdir(bench.workdirBase)).toEqual([])
    await expect(bench.manager.open(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
    isFull = false
    expect(await bench.create({ id })).toBe(id)
  })

  test('warns of fields that are not used, and of a model that seems to take no tools', async () => {
    await using bench = await setBench()
    const llm_config = {
      model: 'gpt-3.5-turbo-instruct',
      base_url: bench.model.baseUrl,
      seed: 7,
      caching_prompt: true,
      temperature: null,
    }
    const { warnings } = await bench.manager.create(CreateConversation.parse({ llm_config }))
    expect(warnings).toEqual([
      'llm_config.seed is not used by this server',
      'llm_config.caching_prompt is not used by this server',
      expect.stringContaining('function calling'),
    ])
  })
})

describe('deleting', () => {
  test('looks for no process where none was started', async () => {
    await using bench = await setBench({
      manager: { endOrphans: () => Promise.reject(new Error('it was looked for')) },
    })
    const id = await bench.create()
    await bench.manager.delete(id)
    await expect(bench.manager.open(id)).rejects.toMatchObject({ code: 'conversation_deleted' })
    expect(bench.logged.join('')).not.toContain('it was looked for')
  })

  test('removes the data and the workdir the server made', async () => {
    await using bench = await setBench()
    const id = await bench.create()
    const { workdir } = await bench.view(id)
    await writeFile(join(workdir, 'result.txt'), 'hello')
    await bench.manager.delete(id)
    expect([await exists(workdir), await exists(bench.sessionOf(id))]).toEqual([false, false])
    await expect(bench.manager.delete(id)).rejects.toMatchObject({ code: 'conversation_deleted' })
    expect(bench.manager.count({}).count).toBe(0)
  })

  test('keeps a workdir that the client named', async () => {
    await using bench = await setBench()
    const id = uuid7()
    for (const workdir of ['project', id]) {
      const made = workdir === id ? await bench.create({ id, workdir }) : await bench.create({ workdir })
      await bench.manager.delete(made)
    }
    await bench.restart()
    expect((await readdir(bench.workdirBase)).sort()).toEqual(['project', id].sort())
  })

  test('removes the workdir the server made even if the conversation works elsewhere now, and keeps the other', async () => {
    await using bench = await setBench()
    const id = await bench.create()
    await bench.configure(id, { workdir: 'project' })
    expect((await bench.view(id)).workdir).toBe(join(bench.workdirBase, 'project'))
    await bench.manager.delete(id)
    expect(await readdir(bench.workdirBase)).toEqual(['project'])
  })

  test('ends the run, and notifies every reader', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
    const conversation = await bench.converse()
    const closed = Promise.withResolvers<string>()
    conversation.log.subscribe({ onClose: closed.resolve })
    await conversation.post(userText('go', true))
    await slow.entered
    await bench.manager.delete(conversation.id)
    expect(await closed.promise).toBe('deleted')
    await expect(conversation.run()).rejects.toMatchObject({ code: 'conversation_deleted' })
    await expect(conversation.pause({ interrupt: false })).rejects.toMatchObject({ code: 'conversation_deleted' })
  })

  test('twice at the same time happens once; the second request gets 410', async () => {
    await using bench = await setBench()
    const id = await bench.create()
    const outcomes = await Promise.allSettled([bench.manager.delete(id), bench.manager.delete(id)])
    expect(outcomes).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'conversation_deleted' } },
    ])
  })

  test('while it is being opened gives nobody a deleted conversation', async () => {
    await using bench = await setBench()
    for (let round = 0; round < 20; round++) {
      const id = await bench.create()
      await bench.restart()
      const opening = bench.manager.open(id)
      const deleting = bench.manager.delete(id)
      const [opened] = await Promise.allSettled([opening, deleting])
      await deleting
      if (opened.status === 'fulfilled') expect(opened.value.log.ended).toBe('deleted')
      else expect(opened.reason).toMatchObject({ code: 'conversation_deleted' })
      expect(await exists(bench.sessionOf(id))).toBe(false)
    }
  })

  test('that cannot be recorded changes nothing', async () => {
    await using bench = await setBench()
    const id = await bench.create()
    const moved = ['tables.db', 'deletions'].map((name) => [
      join(bench.dataDir, name),
      join(bench.dataDir, `no-${name}`),
    ])
    for (const [from, to] of moved) await rename(from!, to!)
    await expect(bench.manager.delete(id)).rejects.toMatchObject({ code: 'storage_failed' })
    expect(await say(await bench.manager.open(id))).toMatchObject({ stop_reason: 'completed' })
    for (const [from, to] of moved) await rename(to!, from!)
    expect(await (await openStorage(bench.dataDir)).deletions.has(id)).toBe(false)
    await bench.manager.delete(id)
  })

  test('that a stop of the server interrupted is finished at the next start', async () => {
    await using bench = await setBench()
    const [id, other] = [await bench.create(), await bench.create()]
    await bench.restart({ kill: true, between: async () => (await openStorage(bench.dataDir)).deletions.mark(id) })
    expect(await allIds(bench.manager)).toEqual([other])
    expect(await exists(bench.sessionOf(id))).toBe(false)
    expect(await readdir(bench.workdirBase)).toEqual([other])
  })
})

describe('listing', () => {
  const titled = async (bench: Bench, count: number) => {
    for (let at = 0; at < count; at++) await bench.create({ title: `Number ${at}`, user_id: at % 2 ? 'odd' : 'even' })
  }

  test('newest first, or oldest first', async () => {
    await using bench = await setBench()
    await titled(bench, 3)
    const titles = async (order: string) => (await list(bench.manager, { order })).items.map((item) => item.title)
    expect(await titles('desc')).toEqual(['Number 2', 'Number 1', 'Number 0'])
    expect(await titles('asc')).toEqual(['Number 0', 'Number 1', 'Number 2'])
  })

  test.each(['asc', 'desc'])(
    'page by page (%s) shows each one that was there once, however many are added or removed meanwhile',
    async (order) => {
      await using bench = await setBench()
      await titled(bench, 7)
      const before = await allIds(bench.manager, { order })
      const added: string[] = []
      const seen = await allIds(bench.manager, { order, limit: 2 }, async () => void added.push(await bench.create()))
      expect(seen.filter((id) => !added.includes(id))).toEqual(before)
      expect(new Set(seen).size).toBe(seen.length)
      await bench.manager.delete(before[1]!)
      expect((await allIds(bench.manager, { order, limit: 1 })).filter((id) => !added.includes(id))).toEqual(
        before.toSpliced(1, 1),
      )
    },
  )

  test('lists and counts by the same filters', async () => {
    await using bench = await setBench({ script: [{ text: 'Hello.' }] })
    await titled(bench, 4)
    // Two creates may well be of the same millisecond.
    const then = Date.now()
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(then)
    const named = await bench.create({ title: 'Quarterly REPORT' })
    const talked = await bench.converse()
    await say(talked, 'Please write the report')
    const failed = await bench.converse({ llm_config: { model: 'm', base_url: 'http://127.0.0.1:1', num_retries: 0 } })
    await say(failed)
    const middle = (await bench.view(named)).created_at
    for (const [query, count] of [
      [{}, 7],
      [{ user_id: 'odd' }, 2],
      [{ q: 'report' }, 2],
      [{ q: 'nothing like it' }, 0],
      [{ status: 'error' }, 1],
      [{ status: 'running' }, 0],
      [{ created_before: middle }, 4],
      [{ created_after: middle }, 3],
      [{ updated_after: middle, created_before: middle }, 0],
      [{ created_after: middle, q: 'report', status: 'idle' }, 2],
    ] as const) {
      expect((await list(bench.manager, query)).items, JSON.stringify(query)).toHaveLength(count)
      expect(bench.manager.count(CountConversations.parse(query)).count, JSON.stringify(query)).toBe(count)
    }
  })

  test('the last full page says that it is the last', async () => {
    await using bench = await setBench()
    await titled(bench, 2)
    expect(await list(bench.manager, { limit: 2 })).toMatchObject({ next_page_id: null })
  })

  test.each(['nonsense', '', 'W10', 'WzEsMl0', Buffer.from('["a"]').toString('base64url')])(
    'a page_id that no page gave is refused: %j',
    async (page_id) => {
      await using bench = await setBench()
      await expect(list(bench.manager, { page_id })).rejects.toMatchObject({ code: 'invalid_cursor' })
    },
  )

  test('opens no log, and neither does a start', async () => {
    const { opened, logs } = recordOpenedLogs()
    await using bench = await setBench({ logs })
    await titled(bench, 5)
    await bench.restart()
    expect((await list(bench.manager)).items).toHaveLength(5)
    expect(bench.manager.count({ q: 'number 3' }).count).toBe(1)
    expect(opened).toEqual([])
  })
})

describe('a start of the server', () => {
  test('finds conversations unchanged', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse({ title: 'One' })
    await say(conversation)
    const before = conversation.view()
    await bench.restart()
    expect((await list(bench.manager)).items).toEqual([before])
    expect(await bench.view(conversation.id)).toEqual(before)
    expect(await say(await bench.manager.open(conversation.id))).toMatchObject({ stop_reason: 'completed' })
  })

  test.each([
    ['missing', (path: string) => rm(path)],
    ['torn', async (path: string) => writeFile(path, (await readFile(path, 'utf8')).slice(0, 50))],
    ['empty', (path: string) => writeFile(path, '')],
    [
      'of another conversation',
      async (path: string) =>
        writeFile(path, (await readFile(path, 'utf8')).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, uuid7())),
    ],
    [
      'of another version',
      async (path: string) => writeFile(path, (await readFile(path, 'utf8')).replace('"format":1', '"format":99')),
    ],
    [
      'ahead of the log',
      async (path: string) => writeFile(path, (await readFile(path, 'utf8')).replace(/"lastSeq":\d+/, '"lastSeq":99')),
    ],
    [
      'behind the log',
      async (path: string) =>
        writeFile(
          path,
          JSON.stringify({
            format: 1,
            ...folded([]),
            ...(JSON.parse(await readFile(path, 'utf8')) as object),
            lastSeq: 1,
            usage: {},
            openCalls: [],
          }),
        ),
    ],
  ])('does without a meta.json that is %s: the log tells everything', async (_, garble) => {
    await using bench = await setBench()
    const conversation = await bench.converse({ title: 'One' })
    await say(conversation)
    const before = conversation.view()
    await bench.restart({ between: () => garble(join(bench.sessionOf(conversation.id), 'meta.json')) })
    expect(await bench.view(conversation.id)).toEqual(before)
    expect((await list(bench.manager)).items).toEqual([before])
  })

  test('reports calls that a kill interrupted as such, and the conversation continues', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow'), call('Slow')] }, { text: 'I see.' }],
    })
    const { id } = await bench.converse()
    await (await bench.manager.open(id)).post(userText('go', true))
    await slow.entered
    await bench.restart({ kill: true })
    const conversation = await bench.manager.open(id)
    expect(conversation.view()).toMatchObject({ status: 'paused' })
    const events = await eventsOf(conversation)
    expect(only(events, 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }, { error_type: 'interrupted' }])
    expect(only(events, 'Result')).toMatchObject([{ stop_reason: 'server_restart' }])
    expect(await endOf(conversation, await conversation.run())).toMatchObject({ final_text: 'I see.' })
  })

  test('does not touch runs that a stop of the server paused, and answers the calls that a pause had left running', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'I see.' }] })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    await bench.restart()
    const after = await bench.manager.open(conversation.id)
    expect(after.state).toMatchObject({ status: 'paused', reason: 'server_closing', openCalls: [] })
    expect(bench.model.requests).toHaveLength(1)
  })

  test.each([true, false])('with resume_on_start an interrupted run continues by itself (kill: %s)', async (kill) => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow')] }, { text: 'Resumed.' }],
    })
    const { id } = await bench.converse({ resume_on_start: true })
    await (await bench.manager.open(id)).post(userText('go', true))
    await slow.entered
    await bench.restart({ kill })
    const resumed = await bench.manager.open(id)
    expect(await until(resumed, 'Result', (event) => event.stop_reason === 'completed')).toMatchObject({
      final_text: 'Resumed.',
    })
  })

  test('with resume_on_start a paused run stays paused', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
    const conversation = await bench.converse({ resume_on_start: true })
    await conversation.post(userText('go', true))
    await slow.entered
    await conversation.pause({ interrupt: true })
    await bench.restart()
    expect((await bench.view(conversation.id)).status).toBe('paused')
    expect(await readdir(join(bench.dataDir, 'active'))).toEqual([])
  })

  test('removes the remains of an interrupted create, at any point', async () => {
    await using bench = await setBench()
    const kept = await bench.create()
    const [bare, withSecrets, withLog] = [uuid7(), uuid7(), uuid7()]
    await bench.restart({
      between: async () => {
        for (const id of [bare, withSecrets, withLog]) {
          await mkdir(bench.sessionOf(id))
          await mkdir(join(bench.workdirBase, id))
        }
        await writeFile(join(bench.sessionOf(withSecrets), 'secrets.enc'), 'x')
        await writeFile(join(bench.sessionOf(withLog), 'events.jsonl'), '')
      },
    })
    expect(await allIds(bench.manager)).toEqual([kept])
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([kept])
    expect(await readdir(bench.workdirBase)).toEqual([kept])
  })

  test.each(['with', 'without'])(
    'a damaged log (%s meta.json) makes that one conversation fail, and no other',
    async (meta) => {
      await using bench = await setBench()
      const damaged = await bench.create()
      await say(await bench.manager.open(damaged))
      const sound = await bench.create()
      await bench.restart({
        between: async () => {
          await writeFile(join(bench.sessionOf(damaged), 'events.jsonl'), 'not an event\n')
          if (meta === 'without') await rm(join(bench.sessionOf(damaged), 'meta.json'))
        },
      })
      await expect(bench.manager.open(damaged)).rejects.toMatchObject({ code: 'conversation_damaged' })
      expect((await list(bench.manager, { order: 'asc' })).items).toMatchObject([
        { id: damaged, status: 'error' },
        { id: sound, status: 'idle' },
      ])
      expect(bench.manager.count({ status: new Set(['error']) }).count).toBe(1)
      expect(await say(await bench.manager.open(sound))).toMatchObject({ stop_reason: 'completed' })
      await expect(bench.create({ id: damaged })).rejects.toMatchObject({ code: 'conversation_exists' })
      await bench.manager.delete(damaged)
      expect(await allIds(bench.manager)).toEqual([sound])
    },
  )

  test('with another key it is still readable; only the model’s credentials must be sent again', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    await say(conversation)
    await bench.restart({ secretKeys: ['quite-another-key-material'] })
    const reopened = await bench.manager.open(conversation.id)
    expect(await eventsOf(reopened)).toHaveLength(6)
    expect(await say(reopened)).toMatchObject({ stop_reason: 'error' })
    expect(only(await eventsOf(reopened), 'ErrorEvent')).toMatchObject([
      { error_type: 'auth', message: expect.stringContaining('llm_config.api_key') },
    ])
    expect(bench.model.requests, 'nothing was sent without the key').toHaveLength(1)
    await bench.configure(conversation.id, UpdateConfig.parse({ llm_config: { api_key: 'a-new-key-of-the-model' } }))
    expect(await say(reopened)).toMatchObject({ stop_reason: 'completed' })
    expect(bench.model.requests.at(-1)?.headers.authorization).toBe('Bearer a-new-key-of-the-model')
  })
})

describe('configuring', () => {
  test('merges, masks, and keeps masked values that are sent back', async () => {
    await using bench = await setBench()
    const llm_config = {
      model: 'scripted',
      base_url: bench.model.baseUrl,
      api_key: MODEL_KEY,
      extra_headers: { 'X-Api-Key': 'header-secret-1', 'X-Title': 'My App' },
    }
    const { id } = await bench.manager.create(CreateConversation.parse({ llm_config }))
    const masked = (await bench.view(id)).llm_config
    expect(masked).toMatchObject({
      api_key: '**********',
      extra_headers: { 'X-Api-Key': '**********', 'X-Title': '**********' },
    })
    await bench.configure(
      id,
      UpdateConfig.parse({
        llm_config: { ...masked, temperature: 1, extra_headers: { ...masked.extra_headers, 'X-Title': 'Other' } },
      }),
    )
    await bench.restart()
    await say(await bench.manager.open(id))
    expect(bench.model.requests.at(-1)).toMatchObject({
      body: { temperature: 1 },
      headers: { authorization: `Bearer ${MODEL_KEY}`, 'x-api-key': 'header-secret-1', 'x-title': 'Other' },
    })
  })

  test('the plain words of a header are not secret, its credentials are', async () => {
    const echo = tool('Echo', () => ({ output: 'My App wrote header-secret-1' }))
    await using bench = await setBench({ tools: [echo], script: [{ calls: [call('Echo')] }, { text: 'Done.' }] })
    const llm_config = {
      model: 'scripted',
      base_url: bench.model.baseUrl,
      extra_headers: { 'X-Api-Key': 'header-secret-1', 'X-Title': 'My App' },
    }
    const conversation = await bench.converse({ llm_config })
    await say(conversation)
    expect(only(await eventsOf(conversation), 'ToolResult')[0]?.output).toBe('My App wrote <secret:header X-Api-Key>')
  })

  test('the workdir only while nothing runs', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
    const conversation = await bench.converse()
    const { run_id } = await conversation.post(userText('go', true))
    await slow.entered
    await expect(bench.configure(conversation.id, { workdir: 'other' })).rejects.toMatchObject({
      code: 'conversation_running',
    })
    slow.open()
    await endOf(conversation, run_id!)
    expect(await bench.configure(conversation.id, { workdir: 'other' })).toMatchObject({
      workdir: join(bench.workdirBase, 'other'),
    })
  })
})

describe('a log that cannot be trusted any more', () => {
  test('is reopened automatically; the run it interrupted ends as an error', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Go on.' }] })
    const conversation = await bench.converse()
    const closed = Promise.withResolvers<string>()
    conversation.log.subscribe({ onClose: closed.resolve })
    await conversation.post(userText('go', true))
    await slow.entered
    // Another file under the same name: what is written into the old one is not stored anywhere.
    const path = join(bench.sessionOf(conversation.id), 'events.jsonl')
    const content = await readFile(path)
    await rm(path)
    await writeFile(path, content)
    slow.open()
    expect(await closed.promise, 'readers of the old one come back for the new one').toBe('closing')
    const [reopened, same] = await Promise.all([
      bench.manager.open(conversation.id),
      bench.manager.open(conversation.id),
    ])
    expect(reopened).not.toBe(conversation)
    expect(same).toBe(reopened)
    expect(reopened.state).toMatchObject({ status: 'error', reason: 'error', openCalls: [] })
    expect(only(await eventsOf(reopened), 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
    expect(await endOf(reopened, await reopened.run())).toMatchObject({
      stop_reason: 'completed',
      final_text: 'Go on.',
    })
    expect(slow.calls(), 'what may have had its effects is not repeated').toBe(1)
  })
})

describe('closing', () => {
  test('pauses running conversations, stores that, and refuses later requests', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    const waiting = conversation.waitForRun(conversation.state.run!.id, 60, new AbortController().signal)
    await bench.manager.close()
    expect(await waiting).toMatchObject({ status: 'paused', result: { stop_reason: 'paused' } })
    await expect(bench.manager.open(conversation.id)).rejects.toMatchObject({ code: 'unavailable' })
    await expect(bench.create()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(conversation.post(userText('late'))).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('says when processes could not be ended, and which', async () => {
    let left: readonly number[] = [4711]
    await using bench = await setBench({ manager: { endProcesses: async () => left } })
    expect(await bench.manager.close()).toBe(false)
    expect(bench.logged.find((line) => line.includes('could not be ended'))).toContain('"pids":[4711]')
    left = []
    expect(await bench.manager.close()).toBe(true)
  })

  test('does not wait forever for a conversation, and names those that were not closed', async () => {
    const [hung, broken, other] = [uuid7(), uuid7(), uuid7()]
    await longEnough(0.2, async (seconds) => {
      const home = { directory: '' }
      // The directory is known when there is a bench.
      let store: EventStore | undefined
      const real = () => (store ??= createJsonlStore(home))
      const over = Promise.withResolvers<void>()
      const logs: BenchLogs = {
        home,
        copy: (...args) => real().copy(...args),
        open: (id) => real().open(id),
        delete: (id) => real().delete(id),
        async create(id, ...rest) {
          const log = await real().create(id, ...rest)
          const close = log.close.bind(log)
          log.close = async () => {
            if (id === hung) await over.promise
            await close()
            if (id === broken) throw new Error('the disk is gone')
          }
          return log
        },
      }
      await using bench = await setBench({ logs, manager: { closeTimeoutMs: seconds * 1000 } })
      for (const id of [hung, broken, other]) await bench.create({ id })
      expect(await bench.manager.close()).toBe(false)
      const lines = bench.logged.map((line) => JSON.parse(line))
      over.resolve()
      await expect.poll(() => bench.manager.close()).toBe(true)
      const named = lines.find(({ msg }) => msg.startsWith('these conversations were not closed'))
      const fault = lines.find(({ msg }) => msg === 'a conversation could not be closed')
      if (fault === undefined || named.conversation_ids.includes(other)) return false
      expect(fault).toMatchObject({ conversation_id: broken })
      expect(named).toMatchObject({ level: 50, count: 2, conversation_ids: [hung, broken] })
      return true
    })
  })

  test('waits for a conversation that is just being made', async () => {
    await using bench = await setBench()
    const creating = Promise.allSettled([bench.create()])
    await bench.manager.close()
    const [outcome] = await creating
    await bench.restart()
    expect(bench.manager.count({}).count).toBe(outcome.status === 'fulfilled' ? 1 : 0)
  })
})

describe('a create or fork in progress while the server stops', () => {
  test('is refused, or is closed with the others', async () => {
    await using bench = await setBench()
    const opened: EventLog[] = []
    await using other = await setBench({ deps: { onLogOpened: (log) => void opened.push(log) } })
    for (const [{ manager, create }, how] of [
      [bench, 'fork'],
      [other, 'create'],
    ] as const) {
      const source = await create()
      // An id is looked up among the deleted ones first.
      const id = uuid7()
      const making = how === 'create' ? create({ id }) : manager.fork(source, ForkConversation.parse({ id }))
      const outcome = making.then(
        () => 'made',
        (error: Problem) => error.code,
      )
      await manager.close()
      expect(await outcome).toBe('unavailable')
    }
    expect(opened.filter((log) => log.ended === undefined)).toEqual([])
  })
})

describe('the snapshot', () => {
  test('the newest of many states that are written concurrently is kept', async () => {
    await using bench = await setBench()
    const storage = await openStorage(bench.dataDir)
    const state = (await bench.converse()).state
    const seqs = Array.from({ length: 50 }, (_, at) => at + 2)
    await Promise.all(seqs.map((lastSeq) => writeSnapshot(storage, { ...state, lastSeq })))
    expect(await readSnapshot(storage, state.id)).toMatchObject({ lastSeq: 51 })
    expect((await readdir(bench.sessionOf(state.id))).sort()).toEqual(['events.jsonl', 'meta.json', 'secrets.enc'])
  })

  test('restores every field of a state, whatever is in progress', async () => {
    await using bench = await setBench()
    const storage = await openStorage(bench.dataDir)
    const { state } = await bench.converse({
      title: 'T',
      user_id: 'u',
      metadata: { deep: { a: [1] } },
      microagents: ['m'],
      resume_on_start: true,
      max_seconds_per_run: 9,
    })
    const usage = { m: { input_tokens: 1, output_tokens: 2, cached_tokens: 0, reasoning_tokens: 0 } }
    const busy = {
      ...state,
      status: 'running' as const,
      run: {
        id: uuid7(),
        startedAt: state.createdAt,
        startSeq: 3,
        steps: 2,
        maxSteps: 4,
        activeSince: state.createdAt,
        activeMs: 7,
        usage,
        costUsd: 0.1,
        finalText: 'hm',
      },
      openCalls: [
        { toolUseId: 'a', name: 'Bash', input: { command: 'ls' }, runId: uuid7() },
        { toolUseId: 'b', name: 'Bash', input: '{', runId: undefined },
      ],
      request: {
        id: uuid7(),
        openedAt: state.createdAt,
        isReleased: true,
        calls: [
          {
            toolUseId: 'a',
            name: 'Bash',
            input: { command: 'rm' },
            inputHash: 'f'.repeat(64),
            reason: 'a test',
            decision: { behavior: 'allow' as const, updated_input: { command: 'ls' }, message: 'better so' },
          },
        ],
      },
      requests: [
        {
          kind: 'network' as const,
          request_id: uuid7(),
          opened_at: state.createdAt,
          tool_use_ids: [],
          payload: { host: 'example.com', port: 443 },
        },
      ],
      tasks: [
        {
          id: uuid7(),
          type: 'AgentRun' as const,
          title: 'one',
          status: 'running' as const,
          seq: 4,
          createdAt: state.createdAt,
          updatedAt: state.createdAt,
          runId: uuid7(),
          progress: { done: 1, total: 2 },
        },
      ],
      postedKeys: [
        {
          key: 'k',
          bodyHash: 'f'.repeat(64),
          at: state.createdAt,
          answer: { event_id: uuid7(), seq: 3, run_id: uuid7() },
        },
      ],
      usage,
      costUsd: 0.3,
    }
    await writeSnapshot(storage, busy)
    expect(await readSnapshot(storage, state.id)).toEqual(busy)
  })

  test('a write that fails leaves nothing behind, and the next one works', async () => {
    await using bench = await setBench()
    const storage = await openStorage(bench.dataDir)
    const { state } = await bench.converse()
    const meta = join(bench.sessionOf(state.id), 'meta.json')
    await mkdir(meta)
    await expect(writeSnapshot(storage, state)).rejects.toThrow()
    expect((await readdir(bench.sessionOf(state.id))).sort()).toEqual(['events.jsonl', 'meta.json', 'secrets.enc'])
    await rm(meta, { recursive: true })
    await writeSnapshot(storage, state)
    expect(await readSnapshot(storage, state.id)).toEqual(state)
  })
})
