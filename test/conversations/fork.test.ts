import { chmod, lstat, mkdir, readFile, readdir, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { ForkConversation as ForkRequest } from '../../src/contract/conversation.ts'
import { ForkConversation } from '../../src/contract/conversation.ts'
import { findFaults } from '../../src/agent/find-faults.ts'
import { History } from '../../src/agent/history/history.ts'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import { Event as EventSchema } from '../../src/contract/events/event.ts'
import { findBorder } from '../../src/conversations/forked-log.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import type { EventStore } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { uuid7, uuid7Time } from '../../src/lib/uuid7.ts'
import { answered, toolUse, userMessage } from './events.ts'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Bench } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, until, userText } from './fixtures.ts'
import { approvalsOf } from '../support/answering.ts'

const asked = (fields: Partial<ForkRequest> = {}) => ForkConversation.parse(fields)

async function forkOf(bench: Bench, id: string, fields: Partial<ForkRequest> = {}) {
  const view = await bench.manager.fork(id, asked(fields))
  return { view, conversation: await bench.manager.open(view.id) }
}

/** Leaves the files as they are right before the log is there. */
async function undoCreation(bench: Bench, id: string): Promise<void> {
  await rm(join(bench.dataDir, 'summaries.db'))
  await rm(join(bench.sessionOf(id), 'events.jsonl'))
}

/** Once it is there: it is written when the fork has been answered. */
async function metaOf(bench: Bench, id: string): Promise<string> {
  const path = join(bench.sessionOf(id), 'meta.json')
  await expect
    .poll(() =>
      stat(path).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  return path
}

const quick = tool('Quick', () => ({ output: 'ok' }))
/** These turns, by the number of answers before, and then words for ever. */
const enqueue =
  (...turns: ScriptedTurn[]): Script =>
  ({ body }) =>
    turns[body.messages.filter(({ role }) => role === 'assistant').length] ?? { text: 'Done.' }

const TWO_CALLS = enqueue({ text: 'Two calls.', calls: [call('Quick', { n: 1 }), call('Quick', { n: 2 })] })

describe('the log of a fork', () => {
  test('is that of the original, event by event under the same seqs, then ForkedFrom', async () => {
    await using bench = await setBench({ script: TWO_CALLS, tools: [quick] })
    const original = await bench.converse({ title: 'First' })
    await say(original)
    const before = await eventsOf(original)
    const { view, conversation } = await forkOf(bench, original.id)
    const events = await eventsOf(conversation)
    expect(events.map((event) => event.seq)).toEqual(events.map((_, at) => at + 1))
    expect(events.at(-1)).toMatchObject({
      type: 'ForkedFrom',
      from_conversation_id: original.id,
      from_seq: before.length,
      from_cwd: original.state.settings.workdir,
      cwd: view.workdir,
    })
    for (const [at, event] of before.entries()) {
      const copy = events[at]!
      expect({ ...copy, ...whoseItIs(event) }).toEqual({ ...event, ...optionsOf(event) })
      expect(copy).toMatchObject({ conversation_id: view.id })
      expect(copy.id).not.toBe(event.id)
      expect(uuid7Time(copy.id)).toBe(Date.parse(event.timestamp))
      expect(await conversation.log.find(copy.id)).toMatchObject({ seq: copy.seq })
      expect(EventSchema.safeParse(copy).error).toBeUndefined()
    }
    expect(await eventsOf(original), 'the original is as it was').toEqual(before)
  })

  const whoseItIs = (event: Event) => {
    const { id, conversation_id } = event
    return { id, conversation_id, ...('session_id' in event && { session_id: event.session_id }) }
  }
  const optionsOf = (event: Event) => {
    if (event.type !== 'SystemInit') return {}
    const { made_workdir: _, ...options_summary } = event.options_summary
    return { options_summary }
  }

  test('makes an independent conversation: new times, no cost yet, the requested title, no keys', async () => {
    await using bench = await setBench({ script: TWO_CALLS, tools: [quick] })
    const original = await bench.converse({ title: 'First', user_id: 'u', confirmation_mode: false })
    await original.post(userText('hello'), { key: 'k', bodyHash: 'h' })
    await say(original)
    const { view, conversation } = await forkOf(bench, original.id, { title: 'Second' })
    expect(view).toMatchObject({
      title: 'Second',
      user_id: 'u',
      status: 'idle',
      usage: {},
      tools: original.view().tools,
    })
    expect(Date.parse(view.created_at)).toBeGreaterThan(Date.parse(original.view().created_at))
    expect(JSON.stringify(await eventsOf(conversation))).not.toContain('idempotency_key')
    const posted = await conversation.post(userText('other'), { key: 'k', bodyHash: 'other' })
    expect(posted.seq).toBe(conversation.state.lastSeq)
    expect((await forkOf(bench, original.id)).view.title).toBe('First')
  })

  test('is reopened in the same state, from meta.json and without it', async () => {
    await using bench = await setBench({ script: TWO_CALLS, tools: [quick] })
    const original = await bench.converse()
    await say(original)
    const { view, conversation } = await forkOf(bench, original.id)
    const { state } = conversation
    await bench.restart()
    expect((await bench.manager.open(view.id)).state).toEqual(state)
    const meta = await metaOf(bench, view.id)
    await bench.restart({ between: () => rm(meta) })
    expect((await bench.manager.open(view.id)).state).toEqual(state)
    const { files: _, ...shown } = view
    expect(await bench.view(view.id)).toEqual(shown)
  })

  test('can be forked again', async () => {
    await using bench = await setBench({ script: TWO_CALLS, tools: [quick] })
    const original = await bench.converse()
    await say(original)
    const first = await forkOf(bench, original.id)
    const second = await forkOf(bench, first.view.id)
    expect(only(await eventsOf(second.conversation), 'ForkedFrom').map((event) => event.from_conversation_id)).toEqual([
      original.id,
      first.view.id,
    ])
    expect(await say(second.conversation)).toMatchObject({ stop_reason: 'completed' })
  })
})

test('at every seq of a log with tasks, decisions and a pause a fork rests, is sound, and can run on', async () => {
  const slow = gate('Slow')
  const quickly = { text: 'Calls.', calls: [call('Quick', { n: 1 }), call('Quick', { n: 2 })] }
  const script = enqueue(quickly, { calls: [call('Slow')] })
  await using bench = await setBench({ tools: [quick, slow.tool], script })
  const original = await bench.converse({ confirmation_mode: true, secrets: { TOKEN: 'a-secret-of-the-tests' } })
  const agentRun = (text: string) => ({ type: 'AgentRun' as const, message: { role: 'user' as const, content: text } })
  const first = await original.tasks.post({ title: 'one', runnable: agentRun('one') })
  await original.tasks.post({ title: 'two', runnable: agentRun('two') })
  const approve = async (after: number) => {
    const { request_id } = await until(original, 'RequestOpened', (event) => event.seq > after)
    await expect.poll(() => original.state.status).toBe('waiting_for_confirmation')
    await approvalsOf(original).approve(request_id)
  }
  await approve(0)
  await approve(original.state.lastSeq)
  await slow.entered
  await original.pause({ interrupt: false })
  await original.tasks.cancel(first.id)
  await original.setConfirmation(false)
  slow.open()
  await until(original, 'TaskUpdate', (event) => event.title === 'two' && event.status === 'completed')
  await expect.poll(() => original.state.status).toBe('idle')
  const { head } = original.log
  expect(head).toBeGreaterThan(25)
  const requests = bench.model.requests.length

  for (let at_seq = 1; at_seq <= head; at_seq++) {
    const { view, conversation } = await forkOf(bench, original.id, { at_seq, workdir: 'share' })
    const what = `at ${at_seq}`
    expect(['idle', 'paused', 'cancelled'], what).toContain(view.status)
    const rested = await eventsOf(conversation)
    const forked = only(rested, 'ForkedFrom')[0]!
    expect(forked.from_seq, what).toBeGreaterThan(at_seq - 3)
    expect(conversation.state, what).toMatchObject({ openCalls: [], request: undefined, tasks: [], run: undefined })
    expect(rested.reduce(fold, EMPTY_STATE), what).toEqual(conversation.state)
    expect(await say(conversation, 'go on'), what).toMatchObject({ stop_reason: 'completed' })
    await expect.poll(() => conversation.state.status).toBe('idle')
    expectSound(await eventsOf(conversation), what)
    await bench.manager.delete(view.id)
  }
  expect(bench.model.requests.length).toBeGreaterThan(requests + head - 1)
  expect(original.log.head, 'the original is as it was').toBe(head)
})

function expectSound(events: readonly Event[], what: string): void {
  const idsOf = (type: 'ToolUse' | 'ToolResult') => only(events, type).map((event) => event.tool_use_id)
  const calls = only(events, 'AssistantMessage').flatMap((event) => event.tool_use_ids)
  expect(idsOf('ToolUse'), what).toEqual(calls)
  expect(idsOf('ToolResult').toSorted(), what).toEqual(calls.toSorted())
  const runs = new Set(
    only(events, 'StatusUpdate').flatMap((event) => (event.status === 'running' ? [event.run_id] : [])),
  )
  expect(
    only(events, 'Result').map((event) => event.run_id),
    what,
  ).toEqual([...runs])
  const open = new Map<string, string>()
  for (const event of only(events, 'TaskUpdate')) {
    if (['pending', 'running'].includes(event.status)) open.set(event.task_id, event.status)
    else expect(open.delete(event.task_id), what).toBe(true)
  }
  expect([...open], what).toEqual([])
  const history = new History((_, output) => JSON.stringify(output))
  events.forEach((event) => history.add(event))
  expect(findFaults({ messages: history.messages }), what).toEqual([])
}

test('an answer is never separated from its calls', async () => {
  await using bench = await setBench()
  const store = createJsonlStore({ directory: join(bench.dataDir, 'other') })
  const log = await store.create(uuid7())
  const drafts: EventDraft[] = [userMessage('go'), answered({ calls: ['a', 'b'] }), toolUse('a'), toolUse('b')]
  await log.append([...drafts, userMessage('and')])
  const borders = await Promise.all([1, 2, 3, 4, 5].map((seq) => findBorder(log as never, seq)))
  expect(borders).toEqual([1, 1, 1, 4, 5])
})

test('a running conversation keeps running when it is forked; the copy is paused at that point', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ script: enqueue({ calls: [call('Slow')] }), tools: [slow.tool] })
  const original = await bench.converse()
  const { run_id } = await original.post(userText('go', true))
  await slow.entered
  const { view, conversation } = await forkOf(bench, original.id)
  expect(view.status).toBe('paused')
  const events = await eventsOf(conversation)
  expect(only(events, 'ToolResult')).toMatchObject([{ is_error: true, error_type: 'interrupted' }])
  expect(only(events, 'Result')).toMatchObject([{ stop_reason: 'paused', session_id: view.id }])
  expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'paused', reason: 'forked' })
  slow.open()
  expect(await endOf(original, run_id!)).toMatchObject({ stop_reason: 'completed' })
})

test('original and fork are independent: changes in one do not affect the other', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ script: enqueue({ calls: [call('Slow')] }), tools: [slow.tool] })
  const original = await bench.converse()
  const { run_id } = await original.post(userText('go', true))
  await slow.entered
  const { conversation } = await forkOf(bench, original.id)
  slow.open()
  expect(await endOf(original, run_id!)).toMatchObject({ stop_reason: 'completed' })
  expect(conversation.state.status).toBe('paused')
  expect(await endOf(conversation, await conversation.run())).toMatchObject({ stop_reason: 'completed' })
  const { lastSeq } = original.state
  await bench.manager.delete(conversation.id)
  expect(await say(original)).toMatchObject({ stop_reason: 'completed' })
  expect(original.state.lastSeq).toBeGreaterThan(lastSeq)
})

test('secrets are copied, encrypted again, and redacted in the copy, too; the newest configuration applies', async () => {
  await using bench = await setBench()
  const original = await bench.converse({ secrets: { TOKEN: 'a-secret-of-the-tests' } })
  const { lastSeq } = original.state
  await bench.configure(original.id, { title: 'Renamed' })
  const { view, conversation } = await forkOf(bench, original.id, { at_seq: lastSeq })
  expect(view.title).toBe('Renamed')
  await conversation.post(userText('a-secret-of-the-tests'))
  expect(JSON.stringify(await eventsOf(conversation))).not.toContain('a-secret-of-the-tests')
  expect((await bench.manager.open(view.id)).secrets.names()).toEqual(['TOKEN'])
  const [one, two] = await Promise.all(
    [original.id, view.id].map((id) => readFile(join(bench.sessionOf(id), 'secrets.enc'))),
  )
  expect(one!.equals(two!)).toBe(false)
  await bench.manager.delete(original.id)
  await bench.restart()
  expect((await bench.manager.open(view.id)).secrets.names()).toEqual(['TOKEN'])
  expect(await say(await bench.manager.open(view.id)), 'with the key of the model').toMatchObject({
    stop_reason: 'completed',
  })
})

describe('the workdir', () => {
  test('is copied with modes, times and links, without following links; special files are left out and reported', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    const from = original.state.settings.workdir
    await mkdir(join(from, 'deep/er'), { recursive: true })
    await writeFile(join(from, 'deep/er/run.sh'), '#!/bin/sh\n', { mode: 0o755 })
    await writeFile(join(from, 'large'), Buffer.alloc(3_000_000, 'x'))
    await writeFile(join(from, 'setuid'), 'x')
    await chmod(join(from, 'setuid'), 0o4755)
    await symlink('/etc', join(from, 'outside'))
    await symlink('deep/er', join(from, 'inside'))
    await symlink('nowhere', join(from, 'dangling'))
    await promisify(execFile)('mkfifo', [join(from, 'fifo')])
    await chmod(join(from, 'deep'), 0o500)

    const { view } = await forkOf(bench, original.id)
    const to = view.workdir
    expect(to).toBe(join(bench.workdirBase, view.id))
    expect((await readdir(to)).toSorted()).toEqual(['dangling', 'deep', 'inside', 'large', 'outside', 'setuid'])
    expect(view.warnings).toEqual(['fifo was not copied: it is not a file, link or directory'])
    expect(await readFile(join(to, 'deep/er/run.sh'), 'utf8')).toBe('#!/bin/sh\n')
    expect((await stat(join(to, 'deep/er/run.sh'))).mode & 0o7777).toBe(0o755)
    expect((await stat(join(to, 'deep'))).mode & 0o7777).toBe(0o500)
    expect((await stat(join(to, 'setuid'))).mode & 0o7777).toBe(0o755)
    expect((await stat(join(to, 'large'))).mtimeMs).toBeCloseTo((await stat(join(from, 'large'))).mtimeMs, -1)
    expect((await stat(join(to, 'large'))).size).toBe(3_000_000)
    expect((await lstat(join(to, 'outside'))).isSymbolicLink()).toBe(true)
    expect(await Promise.all(['outside', 'inside', 'dangling'].map((name) => readlink(join(to, name))))).toEqual([
      '/etc',
      'deep/er',
      'nowhere',
    ])
    await writeFile(join(to, 'large'), 'changed')
    expect((await stat(join(from, 'large'))).size, 'the original has its own').toBe(3_000_000)
    await bench.manager.delete(view.id)
    await expect(stat(to)).rejects.toMatchObject({ code: 'ENOENT' })
    expect((await stat(from)).isDirectory()).toBe(true)
  })

  test('of a fork is reported to the model, after all that names the other one; a shared one is not', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    await say(original)
    const shared = await forkOf(bench, original.id, { workdir: 'share' })
    expect(shared.view.workdir).toBe(original.state.settings.workdir)
    await say(shared.conversation)
    expect(JSON.stringify(bench.model.requests.at(-1))).not.toContain('copy of')
    const copied = await forkOf(bench, original.id)
    await say(copied.conversation)
    expect(JSON.stringify(bench.model.requests.at(-1))).toContain(
      `now ${copied.view.workdir}, a copy of ${original.state.settings.workdir}`,
    )
    await bench.manager.delete(shared.view.id)
    expect(
      (await stat(original.state.settings.workdir)).isDirectory(),
      'a shared one stays with who it was made for',
    ).toBe(true)
  })

  test('that is shared exists until the last conversation that shares it is deleted, also over restarts', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    const { workdir } = original.state.settings
    const fork = await forkOf(bench, original.id, { workdir: 'share' })
    const second = await forkOf(bench, fork.view.id, { workdir: 'share' })
    await bench.manager.delete(original.id)
    await writeFile(join(workdir, 'file'), 'x')
    await bench.restart()
    await bench.manager.delete(second.view.id)
    expect(await readFile(join(workdir, 'file'), 'utf8')).toBe('x')
    await bench.manager.delete(fork.view.id)
    await expect(stat(workdir)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await bench.storage.sharedWorkdirs.isShared(workdir)).toBe(false)
  })

  test('that an interrupted fork was to share is deleted with the original', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    const { workdir } = original.state.settings
    const fork = await forkOf(bench, original.id, { workdir: 'share' })
    await bench.restart({ between: () => undoCreation(bench, fork.view.id) })
    expect((await stat(workdir)).isDirectory()).toBe(true)
    await bench.manager.delete(original.id)
    await expect(stat(workdir)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('without the server’s own files, if they are inside', async () => {
    await using bench = await setBench({ roots: [] })
    const home = join(bench.dataDir, '..')
    const original = await bench.converse({ workdir: home })
    await writeFile(join(home, 'mine'), 'x')
    const { view } = await forkOf(bench, original.id)
    expect(await readdir(view.workdir)).toEqual(['mine'])
    expect(view.warnings?.toSorted()).toEqual([
      'data was not copied: it belongs to the server',
      'work was not copied: it belongs to the server',
    ])
  })

  test('that is missing is reported, and the fork succeeds', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    await rm(original.state.settings.workdir, { recursive: true })
    const { view } = await forkOf(bench, original.id)
    expect(view.warnings).toEqual([expect.stringContaining('ENOENT')])
    expect(await readdir(view.workdir)).toEqual([])
  })
})

describe('a fork that fails or is interrupted', () => {
  test.each([
    ['beyond the end of the log', { at_seq: 999 }, 'cursor_ahead'],
    ['under the id of the original', {}, 'conversation_exists'],
  ] as const)('%s leaves nothing behind', async (_, fields, code) => {
    await using bench = await setBench()
    const { id } = await bench.converse()
    const wanted = code === 'conversation_exists' ? { ...fields, id } : fields
    await expect(forkOf(bench, id, wanted)).rejects.toMatchObject({ code })
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([id])
    expect(await readdir(bench.workdirBase)).toEqual([id])
  })

  test('a workdir of that name that is there already is neither used nor touched', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    const id = uuid7()
    await mkdir(join(bench.workdirBase, id))
    await writeFile(join(bench.workdirBase, id, 'mine'), 'x')
    await expect(forkOf(bench, original.id, { id })).rejects.toMatchObject({ code: 'conversation_exists' })
    expect(await readFile(join(bench.workdirBase, id, 'mine'), 'utf8')).toBe('x')
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([original.id])
    await bench.restart()
    expect(await readFile(join(bench.workdirBase, id, 'mine'), 'utf8')).toBe('x')
  })

  test('a crash in the middle of the copy leaves nothing after the next start', async () => {
    await using bench = await setBench()
    const original = await bench.converse()
    await writeFile(join(original.state.settings.workdir, 'file'), 'x')
    const { view } = await forkOf(bench, original.id)
    await bench.restart({ between: () => undoCreation(bench, view.id) })
    await expect(bench.manager.open(view.id)).rejects.toMatchObject({ code: 'conversation_not_found' })
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([original.id])
    expect(await readdir(bench.workdirBase)).toEqual([original.id])
  })

  test('a log that does not fit on the disk leaves nothing either', async () => {
    const home = { directory: '' }
    const real = () => createJsonlStore(home)
    const full = async (): Promise<never> => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    }
    const store = {
      home,
      create: (...args: Parameters<EventStore['create']>) => real().create(...args),
      open: (id: string) => real().open(id),
      delete: (id: string) => real().delete(id),
      copy: full,
    }
    await using bench = await setBench({ logs: store })
    const original = await bench.converse({ secrets: { TOKEN: 'a-secret-of-the-tests' } })
    await writeFile(join(original.state.settings.workdir, 'file'), 'x')
    await expect(forkOf(bench, original.id)).rejects.toMatchObject({ code: 'ENOSPC' })
    expect(await readdir(home.directory)).toEqual([original.id])
    expect(await readdir(bench.workdirBase)).toEqual([original.id])
  })
})

test('the same key and request again is the same fork, also after a restart; of another original it is refused', async () => {
  await using bench = await setBench()
  const original = await bench.converse()
  const key = { key: 'k', bodyHash: 'h' }
  const fork = () => bench.manager.fork(original.id, asked(), key)
  const [one, two] = await Promise.allSettled([fork(), fork()])
  expect(one.status).toBe('fulfilled')
  expect(two).toMatchObject({ status: 'rejected', reason: { code: 'idempotency_in_flight' } })
  const first = await fork()
  expect(await fork()).toEqual(first)
  await bench.restart({ kill: true })
  expect(await bench.manager.fork(original.id, asked(), key)).toEqual(first)
  await expect(bench.manager.fork(original.id, asked(), { ...key, bodyHash: 'other' })).rejects.toMatchObject({
    code: 'idempotency_mismatch',
  })
  expect(bench.manager.count({}).count).toBe(2)
})
