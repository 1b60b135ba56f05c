/** When a run takes snapshots of its workdir, what they are of, and what a restore by the conversation does. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { UpdateConfig } from '../../src/contract/conversation.ts'
import { GetDiff } from '../../src/contract/diff.ts'
import type { DiffPage } from '../../src/contract/diff.ts'
import { GetGitDiff } from '../../src/contract/git.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Execution } from '../../src/conversations/dependencies.ts'
import { viewConversationDiff, viewGitDiff } from '../../src/conversations/view-diff.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { BenchOptions } from './fixtures.ts'
import { createExposition } from '../../src/telemetry/exposition.ts'
import { call, eventsOf, only, realShells, say, setBench, tool } from './fixtures.ts'
import { until } from '../support/until.ts'

/** Writes each file of its input. */
const write = tool('Write', (input, { workdir }) => {
  for (const [name, text] of Object.entries(input)) fs.writeFileSync(`${workdir}/${name}`, String(text))
  return { output: 'written' }
})
const look = tool('Look', () => ({ output: 'seen' }), {
  access: () => ({ kind: 'read', paths: ['.'] }),
  readOnly: true,
})

async function open(script: Script, fields: object = {}, options: BenchOptions = {}) {
  const bench = await setBench({ script, tools: [write, look], ...options })
  const conversation = await bench.converse({ file_checkpointing: true, ...fields })
  return {
    bench,
    conversation,
    workdir: conversation.state.settings.workdir,
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

const snapshotsOf = async (conversation: Conversation) => only(await eventsOf(conversation), 'WorkspaceSnapshot')
const typesOf = async (conversation: Conversation) =>
  (await eventsOf(conversation))
    .map(({ type }) => type)
    .filter((type) => /^(ToolUse|ToolResult|WorkspaceSnapshot|Result)$/.test(type))

test('a snapshot comes before the first turn that may change files, and after each that has', async () => {
  await using opened = await open([
    { calls: [call('Look')] },
    { calls: [call('Look'), call('Write', { a: '1\n2\n' }), call('Write', { b: 'b' })] },
    { calls: [call('Look')] },
    { calls: [call('Write', { a: '1\n3\n' })] },
    { text: 'Done.' },
  ])
  const { conversation } = opened
  const result = await say(conversation)
  expect(result).toMatchObject({ stop_reason: 'completed', changes: { files: 2, added: 3, removed: 0 } })
  const snapshots = await snapshotsOf(conversation)
  expect(snapshots.map(({ left_out }) => left_out)).toEqual([[], [], []])
  // Before the run, after the second turn, and after the fourth.
  const { snapshots: own } = conversation.files
  const contentAt = async (seq: number) => {
    const read = await own.readFile('a', seq).catch((error: { code: string }) => error)
    return 'content' in read ? read.content.toString() : read.code
  }
  const results = only(await eventsOf(conversation), 'ToolResult')
  expect(await contentAt(results[0]!.seq)).toBe('file_not_found')
  expect(await contentAt(results[3]!.seq)).toBe('1\n2\n')
  expect(await contentAt(results[4]!.seq)).toBe('1\n2\n')
  expect(await contentAt(results[5]!.seq)).toBe('1\n3\n')
  expect(await contentAt(conversation.log.head)).toBe('1\n3\n')
})

test('the snapshot before a change has what a person has changed since the last one', async () => {
  const editing = tool(
    'Look',
    async (_, { workdir }) => {
      await until('the look after the first change', async () => (await snapshotsOf(conversation)).length === 2)
      fs.writeFileSync(`${workdir}/a`, 'by hand')
      return { output: 'seen' }
    },
    { access: () => ({ kind: 'read', paths: ['.'] }), readOnly: true },
  )
  const script = [
    { calls: [call('Write', { a: 'agent' })] },
    { calls: [call('Look')] },
    { calls: [call('Write', { a: 'agent again' })] },
    { text: 'Done.' },
  ]
  await using opened = await open(script, {}, { tools: [write, editing] })
  const { conversation } = opened
  await say(conversation)
  const [, looked] = only(await eventsOf(conversation), 'ToolResult')
  const { content } = await conversation.files.snapshots.readFile('a', looked!.seq)
  expect(content.toString()).toBe('by hand')
})

test('what a person changes while the model takes long is in the snapshot before the next change, or of the end', async () => {
  const turns = [
    { calls: [call('Write', { a: 'agent' })] },
    { calls: [call('Write', { a: 'agent again' })] },
    { text: 'Done.' },
  ]
  const isChanged = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const script: Script = async ({ messages }) => {
    const step = messages.filter(({ role }) => role === 'assistant').length
    await isChanged[step - 1]?.promise
    // A look that was begun before the change is older than a second then.
    return { ...turns[step]!, delay_ms: step * 1100 }
  }
  await using opened = await open(script)
  const { bench, conversation, workdir } = opened
  const ended = say(conversation)
  const { snapshots } = conversation.files
  for (const [count, text] of ['first by hand', 'second by hand'].entries()) {
    // The model was asked, and the look that was begun then has ended: each change has one before it and one after it.
    await until(
      'a look',
      async () => bench.model.requests.length === count + 2 && (await snapshots.list()).length === 2 * (count + 1),
    )
    fs.writeFileSync(`${workdir}/by-hand`, text)
    isChanged[count]!.resolve()
  }
  expect(await ended).toMatchObject({ changes: { files: 2 } })
  const results = only(await eventsOf(conversation), 'ToolResult')
  const contentAt = async (seq: number) => (await snapshots.readFile('by-hand', seq)).content.toString()
  expect(await contentAt(results[1]!.seq - 1)).toBe('first by hand')
  expect(await contentAt(conversation.log.head)).toBe('second by hand')
})

test('what a hook writes at the end of a run is in its last snapshot and among its changes', async () => {
  const hooks = { Stop: [{ hooks: [{ type: 'command', command: 'echo hook >by-hook' }] }] }
  const script = [{ calls: [call('Write', { a: 'agent' })] }, { text: 'Done.' }]
  await using opened = await open(script, { hooks }, { deps: { createShells: realShells() } })
  const { conversation, workdir } = opened
  expect(await say(conversation)).toMatchObject({ changes: { files: 2 } })
  expect(fs.readFileSync(`${workdir}/by-hook`, 'utf8')).toBe('hook\n')
  const { content } = await conversation.files.snapshots.readFile('by-hook', conversation.log.head)
  expect(content.toString()).toBe('hook\n')
})

test.each([
  ['a name with NUL', 'ref: refs/heads/a\0b'],
  ['a name that is too long', `ref: refs/heads/${'a'.repeat(300)}`],
  ['a name outside of the repository', 'ref: refs/../../../etc/passwd'],
])('a HEAD with %s takes no snapshot away', async (_, head) => {
  await using opened = await open([
    { calls: [call('Write', { a: 'first' })] },
    { calls: [call('Write', { a: 'second' })] },
    { text: 'Done.' },
  ])
  const { conversation, workdir } = opened
  fs.mkdirSync(`${workdir}/.git/refs/heads`, { recursive: true })
  fs.writeFileSync(`${workdir}/.git/HEAD`, head)
  await say(conversation)
  const snapshots = await snapshotsOf(conversation)
  expect(snapshots).toHaveLength(3)
  expect(snapshots.every(({ head_commit }) => head_commit === undefined)).toBe(true)
})

test('a run whose calls only read takes no snapshot, and an unchanged tree makes none', async () => {
  await using opened = await open([
    { calls: [call('Look')] },
    { text: 'Read.' },
    { calls: [call('Write', { a: 'same' })] },
    { text: 'Written.' },
    { calls: [call('Write', { a: 'same' })] },
    { text: 'Written again.' },
  ])
  const { conversation } = opened
  expect((await say(conversation)).changes).toBeUndefined()
  expect(await snapshotsOf(conversation)).toEqual([])
  expect(fs.existsSync(`${opened.bench.dataDir}/sessions/${conversation.id}/snapshots`)).toBe(false)
  expect((await say(conversation)).changes).toEqual({ files: 1, added: 1, removed: 0 })
  const before = await snapshotsOf(conversation)
  expect((await say(conversation)).changes).toEqual({ files: 0, added: 0, removed: 0 })
  expect(await snapshotsOf(conversation)).toEqual(before)
  expect((await typesOf(conversation)).filter((type) => type !== 'Result')).toHaveLength(3 + 3 + 2)
})

test('a conversation without the setting takes none', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1' })] }, { text: 'Done.' }], {
    file_checkpointing: false,
  })
  expect(await say(opened.conversation)).not.toHaveProperty('changes')
  expect(await snapshotsOf(opened.conversation)).toEqual([])
})

test('what was changed by hand between two runs is there before the second one', async () => {
  await using opened = await open([
    { calls: [call('Write', { a: 'by the agent' })] },
    { text: 'Done.' },
    { calls: [call('Write', { a: 'again' })] },
    { text: 'Done.' },
  ])
  const { conversation, workdir } = opened
  const first = await say(conversation)
  const { snapshots } = conversation.files
  expect((await snapshots.readFile('a', first.seq - 1)).content.toString()).toBe('by the agent')
  fs.writeFileSync(`${workdir}/a`, 'by hand')
  const second = await say(conversation)
  expect(second.changes).toEqual({ files: 1, added: 1, removed: 1 })
  expect((await snapshots.readFile('a', first.seq)).content.toString()).toBe('by hand')
  await snapshots.restore(first.seq, conversation.log.head, () => {})
  expect(fs.readFileSync(`${workdir}/a`, 'utf8')).toBe('by hand')
  // A restore can be taken back: it began with a snapshot.
  await snapshots.restore(second.seq, conversation.log.head, () => {})
  expect(fs.readFileSync(`${workdir}/a`, 'utf8')).toBe('again')
})

test('a restore names what somebody has changed since the last snapshot, before it changes anything', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1', b: '1' })] }, { text: 'Done.' }])
  const { conversation, workdir } = opened
  await say(conversation)
  fs.writeFileSync(`${workdir}/b`, 'by hand')
  fs.writeFileSync(`${workdir}/new`, 'by hand')
  const { snapshots } = conversation.files
  expect(await snapshots.planRestore(1)).toMatchObject({
    removed: ['a', 'b', 'new'],
    changed: [],
    changed_since: ['new', 'b'],
  })
  const refused = snapshots.restore(1, conversation.log.head, ({ changed_since }) => {
    if (changed_since.length > 0) throw new Error('changed')
  })
  await expect(refused).rejects.toThrow('changed')
  expect(fs.readdirSync(workdir).sort()).toEqual(['a', 'b', 'new'])
})

test('snapshots outlive a restart, a fork has those of its original, and each can be deleted', async () => {
  await using opened = await open([
    { calls: [call('Write', { a: '1' })] },
    { text: 'Done.' },
    { calls: [call('Write', { a: '2' })] },
    { text: 'Done.' },
  ])
  const { bench, conversation } = opened
  const first = await say(conversation)
  await say(conversation)
  const before = await snapshotsOf(conversation)
  await bench.restart()
  const source = await bench.manager.open(conversation.id)
  expect(await snapshotsOf(source)).toEqual(before)
  expect((await source.files.snapshots.readFile('a', first.seq)).content.toString()).toBe('1')

  const fork = await bench.manager.fork(conversation.id, { workdir: 'copy' })
  const forked = await bench.manager.open(fork.id)
  await bench.manager.delete(conversation.id)
  const { snapshots } = forked.files
  expect((await snapshots.readFile('a', first.seq)).content.toString()).toBe('1')
  await snapshots.restore(first.seq, forked.log.head, () => {})
  expect(fs.readFileSync(`${forked.state.settings.workdir}/a`, 'utf8')).toBe('1')
  await snapshots.purge()
  await expect(snapshots.readFile('a', first.seq)).rejects.toMatchObject({ code: 'snapshot_not_found' })
})

test('a snapshot that fails does not fail the run, and the log of the server says why', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1' })] }, { text: 'Done.' }])
  const { bench, conversation } = opened
  fs.writeFileSync(`${bench.dataDir}/sessions/${conversation.id}/snapshots`, 'in the way')
  expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  expect(await snapshotsOf(conversation)).toEqual([])
  expect(bench.logged.join('')).toContain('no snapshot of the workdir could be taken')
  expect(createExposition(bench.metrics.instruments).text()).toContain(
    'agent_server_snapshot_seconds_count{outcome="failed"} 1',
  )
})

const SIGNAL = new AbortController().signal
const diffOf = async (conversation: Conversation, query: object = {}) =>
  await viewConversationDiff(conversation, GetDiff.parse(query), SIGNAL)

/** The files of a diff, without what most tests do not look at. */
const briefly = ({ items }: DiffPage) =>
  items.map(({ status, path, old_path: old }) => [status, ...(old ? [old] : []), path])

const ROWS = Array.from({ length: 50 }, (_, index) => `row ${index}`).join('\n')

test('a diff does not show the files of a directory that the conversation no longer has', async () => {
  const elsewhere = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'elsewhere-')))
  onTestFinished(() => fs.rmSync(elsewhere, { recursive: true, force: true }))
  fs.writeFileSync(`${elsewhere}/private.txt`, 'of the other directory\n')
  const fields = { additional_directories: [elsewhere] }
  await using opened = await open([{ calls: [call('Write', { a: '1\n' })] }, { text: 'Done.' }], fields)
  const { bench, conversation } = opened
  await say(conversation)
  fs.writeFileSync(`${elsewhere}/private.txt`, 'changed\n')
  const paths = async () => (await diffOf(conversation, { from: 'start' })).items.map(({ path }) => path)
  expect(await paths()).toEqual(expect.arrayContaining(['a', `${elsewhere}/private.txt`]))
  await bench.configure(conversation.id, UpdateConfig.parse({ additional_directories: [] }))
  expect(await paths()).toEqual(['a'])
})

test('a diff has renames, binary files, modes and links, page by page, with secrets redacted', async () => {
  const change = tool('Change', (_, { workdir }) => {
    fs.renameSync(`${workdir}/old name.txt`, `${workdir}/new "name".txt`)
    fs.writeFileSync(`${workdir}/binary`, Buffer.from([0, 1, 2, 255]))
    fs.chmodSync(`${workdir}/run.sh`, 0o755)
    fs.symlinkSync('/etc/passwd', `${workdir}/link`)
    fs.rmSync(`${workdir}/gone`)
    fs.mkdirSync(`${workdir}/src`)
    fs.writeFileSync(`${workdir}/src/key.txt`, 'the key is the-secret-of-the-test\n')
    fs.writeFileSync(Buffer.concat([Buffer.from(`${workdir}/`), Buffer.from([0xff])]), 'not UTF-8\n')
    return { output: 'changed' }
  })
  await using opened = await open([{ calls: [call('Change')] }, { text: 'Done.' }], {}, { tools: [change] })
  const { conversation, workdir } = opened
  await conversation.secrets.put({ KEY: 'the-secret-of-the-test' })
  fs.writeFileSync(`${workdir}/old name.txt`, ROWS)
  fs.writeFileSync(`${workdir}/run.sh`, 'echo\n', { mode: 0o644 })
  fs.writeFileSync(`${workdir}/gone`, '1\n2\n')
  expect((await say(conversation)).changes).toEqual({ files: 7, added: 3, removed: 2 })

  const whole = await diffOf(conversation)
  expect(new Set(briefly(whole).map(String))).toEqual(
    new Set([
      String(['renamed', 'old name.txt', 'new "name".txt']),
      String(['added', 'binary']),
      String(['modified', 'run.sh']),
      String(['added', 'link']),
      String(['deleted', 'gone']),
      String(['added', 'src/key.txt']),
      String(['added', '\uFFFD']),
    ]),
  )
  const fileOf = (path: string) => whole.items.find((each) => each.path === path)
  expect(fileOf('binary')).toMatchObject({ binary: true, added: 0, removed: 0 })
  expect(fileOf('run.sh')).toMatchObject({ old_mode: '100644', new_mode: '100755', added: 0 })
  expect(fileOf('link')).toMatchObject({ new_mode: '120000', added: 1 })
  expect(fileOf('src/key.txt')!.patch).toMatch(
    /^diff --git a\/src\/key.txt b\/src\/key.txt\n[^]*\n\+the key is (?!the-secret)/,
  )
  expect(fileOf('new "name".txt')!.patch).toContain('rename from old name.txt\n')
  expect(JSON.stringify(whole)).not.toContain('the-secret-of-the-test')

  const first = await diffOf(conversation, { limit: 4 })
  fs.writeFileSync(`${workdir}/later`, 'of another page')
  const second = await diffOf(conversation, { limit: 4, page_id: first.next_page_id })
  expect([...first.items, ...second.items]).toEqual(whole.items)
  expect(second).toMatchObject({ files: 7, added: 3, removed: 2, next_page_id: null })

  expect(briefly(await diffOf(conversation, { path: 'src', patch: 'false' }))).toEqual([['added', 'src/key.txt']])
  await expect(diffOf(conversation, { path: '../data' })).rejects.toMatchObject({ code: 'file_not_found' })
  await expect(diffOf(conversation, { path: '/etc' })).rejects.toMatchObject({ code: 'file_not_found' })
  const gone = `${'0'.repeat(40)}..${'1'.repeat(40)}:0`
  await expect(diffOf(conversation, { page_id: gone })).rejects.toMatchObject({ code: 'snapshot_not_found' })
})

test('a patch that is too long is cut, and the numbers of its lines are whole', async () => {
  const long = Array.from({ length: 100_000 }, (_, index) => `line ${index}`).join('\n')
  const fill = tool('Fill', (_, { workdir }) => {
    fs.writeFileSync(`${workdir}/long`, long)
    fs.writeFileSync(`${workdir}/last`, 'x')
    return { output: 'filled' }
  })
  await using opened = await open([{ calls: [call('Fill')] }, { text: 'Done.' }], {}, { tools: [fill] })
  await say(opened.conversation)
  const { items } = await diffOf(opened.conversation)
  expect(items[0]).toMatchObject({ path: 'last', added: 1 })
  expect(items[1]).toMatchObject({ path: 'long', added: 100_000, patch_truncated: true })
  expect(items[1]!.patch!.length).toBeLessThanOrEqual(256 * 1024)
})

test('one snapshot per message of earlier runs is kept, and all of the last run', async () => {
  const turns = ['1', '2', '3'].map((a) => ({ calls: [call('Write', { a })] }))
  const again = ['4', '5'].map((a) => ({ calls: [call('Write', { a })] }))
  await using opened = await open([...turns, { text: 'Done.' }, ...again, { text: 'Done.' }])
  const { conversation } = opened
  const { snapshots } = conversation.files
  await say(conversation)
  expect(await snapshots.list()).toHaveLength(4)
  const second = await say(conversation)
  const { seq } = only(await eventsOf(conversation), 'StatusUpdate').findLast(({ status }) => status === 'running')!
  await snapshots.prune(seq)
  // Before the first message, after its run, and all of the second run.
  expect(await snapshots.list()).toHaveLength(4)
  expect(await snapshotsOf(conversation)).toHaveLength(6)
  const contentAt = async (at: number) => (await snapshots.readFile('a', at)).content.toString()
  expect(await contentAt(seq - 2)).toBe('3')
  expect(await contentAt(second.seq)).toBe('5')
})

test('snapshots of earlier runs are removed when they are too old or too large, and those of the last run are not', async () => {
  for (const snapshotLimits of [
    { maxAgeMs: -1, maxBytes: 1e9 },
    { maxAgeMs: 1e9, maxBytes: 1 },
  ]) {
    const runs = ['1', '2', '3'].flatMap((a) => [{ calls: [call('Write', { a })] }, { text: 'Done.' }])
    await using opened = await open(runs, {}, { deps: { snapshotLimits } })
    const { conversation } = opened
    const { snapshots } = conversation.files
    const first = await say(conversation)
    await say(conversation)
    const last = await say(conversation)
    const { seq } = only(await eventsOf(conversation), 'StatusUpdate').findLast(({ status }) => status === 'running')!
    await snapshots.prune(seq)
    expect((await snapshots.readFile('a', last.seq)).content.toString()).toBe('3')
    await expect(snapshots.at(first.seq)).rejects.toMatchObject({ code: 'snapshot_not_found' })
  }
})

test('what clients have compared with the files of now removes no snapshot', async () => {
  const runs = ['1', '2'].flatMap((a) => [{ calls: [call('Write', { a })] }, { text: 'Done.' }])
  const snapshotLimits = { maxAgeMs: 1e9, maxBytes: 1e6 }
  await using opened = await open(runs, {}, { deps: { snapshotLimits } })
  const { conversation, workdir } = opened
  const { snapshots } = conversation.files
  const first = await say(conversation)
  await say(conversation)
  fs.writeFileSync(`${workdir}/large`, randomBytes(2e6))
  await snapshots.commitFor('now')
  fs.rmSync(`${workdir}/large`)
  await snapshots.commitFor('now')
  const { seq } = only(await eventsOf(conversation), 'StatusUpdate').findLast(({ status }) => status === 'running')!
  await snapshots.prune(seq)
  expect((await snapshots.readFile('a', first.seq)).content.toString()).toBe('1')
})

test('the store does not grow with each change that clients look at, and keeps its snapshots', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1' })] }, { text: 'Done.' }])
  const { conversation, workdir } = opened
  const { snapshots } = conversation.files
  const first = await say(conversation)
  const content = randomBytes(100_000)
  for (let look = 0; look < 40; look++) {
    content.writeUInt32BE(look)
    fs.writeFileSync(`${workdir}/large`, content)
    await snapshots.commitFor('now')
  }
  const packs = `${snapshots.git.directory}/objects/pack`
  const sizes = fs.readdirSync(packs).map((name) => fs.statSync(`${packs}/${name}`).size)
  expect(sizes.reduce((a, b) => a + b)).toBeLessThan(32 * content.length)
  expect((await snapshots.readFile('a', first.seq)).content.toString()).toBe('1')
  expect((await snapshots.planRestore(first.seq)).removed).toEqual(['large'])
})

test('the pages of a client outlive what others look at meanwhile, also a repack', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1' })] }, { text: 'Done.' }])
  const { conversation, workdir } = opened
  await say(conversation)
  const names = Array.from({ length: 3 }, (_, index) => `new-${index}`)
  for (const name of names) fs.writeFileSync(`${workdir}/${name}`, name)
  const { directory } = conversation.files.snapshots.git
  const packs = () => fs.readdirSync(`${directory}/objects/pack`).length
  const firstPages: Awaited<ReturnType<typeof diffOf>>[] = []
  for (let before = 0; packs() > before;) {
    before = packs()
    fs.writeFileSync(`${workdir}/other`, `${firstPages.length}`)
    firstPages.push(await diffOf(conversation, { limit: 1 }))
  }
  const rest = await diffOf(conversation, { page_id: firstPages.at(-4)!.next_page_id })
  expect(rest.items.map(({ path }) => path)).toEqual([...names, 'other'])
})

test('a moment that the log has not reached is refused', async () => {
  await using opened = await open([{ calls: [call('Write', { a: '1' })] }, { text: 'Done.' }])
  const { conversation } = opened
  await say(conversation)
  const { head } = conversation.log
  for (const query of [{ from: `${head + 1}` }, { to: `${head + 1}` }])
    await expect(diffOf(conversation, query)).rejects.toMatchObject({ code: 'cursor_ahead' })
  await expect(conversation.files.snapshots.readFile('a', head + 1)).rejects.toMatchObject({ code: 'cursor_ahead' })
})

test('a conversation that has reached its disk limit takes no snapshot until there is room again', async () => {
  let command = ''
  const createTools: Execution['createTools'] = (_, { shells }) => [
    tool('Run', async (_input, { signal }) => {
      const { exitCode } = await shells.get('agent').run(command, { timeout: 60, signal })
      return { output: exitCode }
    }),
  ]
  const script = Array.from({ length: 100 }, () => [{ calls: [call('Run', {})] }, { text: 'Done.' }]).flat()
  const fields = { limits: { disk_bytes: 32 * 1024 ** 2 } }
  await using opened = await open(script, fields, { deps: { createTools, createShells: realShells() } })
  const { bench, conversation } = opened
  const run = async (text: string) => {
    command = text
    await say(conversation)
    return (await snapshotsOf(conversation)).length
  }
  await run('for i in 1 2 3 4 5; do head -c 8M /dev/urandom >part-$i; done')
  // On a busy machine, what a command has written is measured after it.
  await until('a run without a snapshot', async () => {
    await run('date +%N >b')
    return bench.logged.join('').includes('has reached its disk limit')
  })
  const before = await run('date +%N >b')
  expect(await run('date +%N >b')).toBe(before)
  await until('a snapshot', async () => (await run('rm -f part-*; date +%N >b')) > before)
})

test('the repository is compared with the commits of HEAD when the last run and the conversation began', async () => {
  const git = (workdir: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: workdir,
      encoding: 'utf8',
    }).trim()
  const commit = tool('Commit', (_, { workdir }) => ({
    output: `${git(workdir, 'add', '-A')}${git(workdir, 'commit', '-qm', 'of the agent')}`,
  }))
  const script = [
    { calls: [call('Write', { a: '1\n' })] },
    { calls: [call('Commit')] },
    { text: 'Done.' },
    { calls: [call('Write', { b: '2\n' })] },
    { calls: [call('Commit')] },
    { text: 'Done.' },
  ]
  await using opened = await open(script, {}, { tools: [write, commit] })
  const { conversation, workdir } = opened
  const compare = async (base: 'run' | 'start' | 'head') => {
    const { base_commit, items } = await viewGitDiff(conversation, GetGitDiff.parse({ base }), SIGNAL)
    return [base_commit, ...items.map(({ path }) => path)]
  }
  git(workdir, 'init', '-q', '-b', 'main')
  git(workdir, 'commit', '-q', '--allow-empty', '-m', 'by hand')
  const first = git(workdir, 'rev-parse', 'HEAD')
  await expect(compare('run')).rejects.toMatchObject({ code: 'snapshot_not_found' })
  await say(conversation)
  expect(await compare('start')).toEqual([first, 'a'])
  expect(await compare('run')).toEqual([first, 'a'])
  // No file differs, but HEAD.
  git(workdir, 'commit', '-q', '--allow-empty', '-m', 'by hand')
  git(workdir, 'pack-refs', '--all')
  const second = git(workdir, 'rev-parse', 'HEAD')
  await say(conversation)
  expect(await compare('run')).toEqual([second, 'b'])
  expect(await compare('start')).toEqual([first, 'a', 'b'])
  expect(await compare('head')).toEqual([git(workdir, 'rev-parse', 'HEAD')])
})
