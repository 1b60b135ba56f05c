/** Which files a fork has: those of its moment, if there is a snapshot of it, and else those of now. */
import * as fs from 'node:fs'
import { expect, test } from 'vitest'
import { ForkConversation, UpdateConfig } from '../../src/contract/conversation.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { call, eventsOf, only, realShells, say, setBench, tool } from './fixtures.ts'
import type { Bench, BenchOptions } from './fixtures.ts'

const write = tool('Write', (input, { workdir }) => {
  for (const [name, text] of Object.entries(input)) fs.writeFileSync(`${workdir}/${name}`, String(text))
  return { output: 'written' }
})

/** Two runs: `a` is 1, then 2, and `b` is new. */
async function open(fields: object = {}, deps: BenchOptions['deps'] = {}) {
  const script = [
    { calls: [call('Write', { a: '1' })] },
    { text: 'Done.' },
    { calls: [call('Write', { a: '2', b: 'new' })] },
    { text: 'Done.' },
  ]
  const bench = await setBench({ script, tools: [write], deps })
  const conversation = await bench.converse({ file_checkpointing: true, ...fields })
  const { workdir } = conversation.state.settings
  return { bench, conversation, workdir, [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose]() }
}

async function forkOf(bench: Bench, { id }: Conversation, fields: object) {
  const view = await bench.manager.fork(id, ForkConversation.parse(fields))
  const forked = await bench.manager.open(view.id)
  const text = (name: string) => fs.readFileSync(`${view.workdir}/${name}`, 'utf8')
  return { view, forked, text, names: fs.readdirSync(view.workdir).toSorted() }
}

test('a fork has the files of its moment, and its answer and its event say so', async () => {
  await using opened = await open()
  const { bench, conversation, workdir } = opened
  const first = await say(conversation)
  await say(conversation)
  const fork = await forkOf(bench, conversation, { at_seq: first.seq })
  expect([fork.names, fork.text('a')]).toEqual([['a'], '1'])
  expect(fork.view.files).toMatchObject({ from: 'snapshot', left_out: [] })
  const [event] = only(await eventsOf(fork.forked), 'ForkedFrom')
  expect(event?.files).toEqual(fork.view.files)
  expect([fs.readdirSync(workdir).toSorted(), fs.readFileSync(`${workdir}/a`, 'utf8')]).toEqual([['a', 'b'], '2'])
  const beginning = await forkOf(bench, conversation, { at_seq: 1 })
  expect(beginning.names).toEqual([])
  expect(beginning.view.files).toMatchObject({ from: 'snapshot' })
})

test('a fork of a fork has the files of its moment, also after the original was deleted', async () => {
  await using opened = await open()
  const { bench, conversation } = opened
  const first = await say(conversation)
  await say(conversation)
  const whole = await forkOf(bench, conversation, {})
  await bench.manager.delete(conversation.id)
  const fork = await forkOf(bench, whole.forked, { at_seq: first.seq })
  expect([fork.names, fork.text('a'), fork.view.files?.from]).toEqual([['a'], '1', 'snapshot'])
})

test('the files of a fork and those of its original go back apart, with the original among its directories', async () => {
  await using opened = await open({}, { createShells: realShells() })
  const { bench, conversation, workdir } = opened
  await say(conversation)
  const { forked, view } = await forkOf(bench, conversation, {})
  await forked.configure(UpdateConfig.parse({ additional_directories: [workdir] }))
  const before = forked.log.head
  fs.writeFileSync(`${workdir}/a`, 'of the original')
  await say(forked)
  expect(fs.readFileSync(`${view.workdir}/a`, 'utf8')).toBe('2')
  const outcome = await forked.rewind({ to_seq: before, last_seq: forked.log.head, files: true }, {})
  expect(outcome.files?.changed).toContain('a')
  const textsOf = (directory: string) => [fs.readFileSync(`${directory}/a`, 'utf8'), fs.existsSync(`${directory}/b`)]
  expect(textsOf(view.workdir)).toEqual(['1', false])
  expect(textsOf(workdir)).toEqual(['of the original', false])
})

test('a fork that moves to the directory of its original restores the files there', async () => {
  await using opened = await open({}, { createShells: realShells() })
  const { bench, conversation, workdir } = opened
  await say(conversation)
  const { forked, view } = await forkOf(bench, conversation, {})
  await forked.configure(UpdateConfig.parse({ workdir }))
  const before = forked.log.head
  await say(forked)
  expect(fs.readFileSync(`${workdir}/a`, 'utf8')).toBe('2')
  const outcome = await forked.rewind({ to_seq: before, last_seq: forked.log.head, files: true }, {})
  expect([outcome.files?.failed, fs.readFileSync(`${workdir}/a`, 'utf8')]).toEqual([[], '1'])
  expect(fs.readFileSync(`${view.workdir}/a`, 'utf8')).toBe('1')
})

test('paths that no snapshot has are copied as they are now, and the answer lists them', async () => {
  await using opened = await open()
  const { bench, conversation, workdir } = opened
  fs.writeFileSync(`${workdir}/.gitignore`, '*.log\n')
  fs.writeFileSync(`${workdir}/x.log`, 'before')
  const first = await say(conversation)
  await say(conversation)
  fs.writeFileSync(`${workdir}/x.log`, 'after')
  const fork = await forkOf(bench, conversation, { at_seq: first.seq })
  expect(fork.names).toEqual(['.gitignore', 'a', 'x.log'])
  expect(fork.text('x.log')).toBe('after')
  expect(fork.view.files?.left_out).toEqual([{ path: 'x.log', reason: 'ignored' }])
})

test('a fork at the end has the files of now, with what was changed by hand since', async () => {
  await using opened = await open()
  const { bench, conversation, workdir } = opened
  await say(conversation)
  fs.writeFileSync(`${workdir}/a`, 'by hand')
  for (const fields of [{}, { at_seq: conversation.log.head }]) {
    const fork = await forkOf(bench, conversation, fields)
    expect([fork.text('a'), fork.view.files]).toEqual(['by hand', { from: 'now' }])
  }
})

test('a fork that shares the directory changes no file in it', async () => {
  await using opened = await open()
  const { bench, conversation } = opened
  const first = await say(conversation)
  await say(conversation)
  const fork = await forkOf(bench, conversation, { at_seq: first.seq, workdir: 'share' })
  expect([fork.text('a'), fork.view.files]).toEqual(['2', { from: 'shared' }])
})

test('without a snapshot of its moment a fork has the files of now, and says why', async () => {
  await using without = await open({ file_checkpointing: false })
  const first = await say(without.conversation)
  await say(without.conversation)
  const off = await forkOf(without.bench, without.conversation, { at_seq: first.seq })
  expect([off.text('a'), off.view.files]).toEqual([
    '2',
    { from: 'now', reason: expect.stringContaining('file_checkpointing') },
  ])

  await using opened = await open()
  const { bench, conversation } = opened
  const { seq } = await say(conversation)
  await say(conversation)
  await conversation.files.snapshots.purge()
  const purged = await forkOf(bench, conversation, { at_seq: seq })
  expect(purged.text('a')).toBe('2')
  expect(purged.view.files).toMatchObject({ from: 'now', reason: expect.stringContaining('no snapshot') })
})

test('a fork from before the conversation moved to another directory has the files of now', async () => {
  await using opened = await open()
  const { bench, conversation } = opened
  const { seq } = await say(conversation)
  const elsewhere = fs.mkdtempSync(`${bench.dataDir}-elsewhere-`)
  fs.writeFileSync(`${elsewhere}/other`, 'kept')
  await bench.configure(conversation.id, UpdateConfig.parse({ workdir: elsewhere }))
  const fork = await forkOf(bench, conversation, { at_seq: seq })
  fs.rmSync(elsewhere, { recursive: true })
  expect(fork.names).toEqual(['other'])
  expect(fork.view.files).toMatchObject({ from: 'now', reason: expect.stringContaining('another directory') })
})

test('a link of the workdir that points out is not followed when a fork restores its files', async () => {
  await using opened = await open()
  const { bench, conversation, workdir } = opened
  const outside = fs.mkdtempSync(`${bench.dataDir}-outside-`)
  fs.mkdirSync(`${workdir}/sub`)
  fs.writeFileSync(`${workdir}/sub/x`, 'of then')
  const { seq } = await say(conversation)
  await say(conversation)
  fs.rmSync(`${workdir}/sub`, { recursive: true })
  fs.writeFileSync(`${outside}/x`, 'outside')
  fs.symlinkSync(outside, `${workdir}/sub`)
  const fork = await forkOf(bench, conversation, { at_seq: seq })
  const left = fs.readFileSync(`${outside}/x`, 'utf8')
  fs.rmSync(outside, { recursive: true })
  expect([left, fork.text('sub/x')]).toEqual(['outside', 'of then'])
})

test('a repeated request has the same files in its answer', async () => {
  await using opened = await open()
  const { bench, conversation } = opened
  const { seq } = await say(conversation)
  await say(conversation)
  const once = { key: 'once', bodyHash: 'of the body' }
  const request = ForkConversation.parse({ at_seq: seq })
  const first = await bench.manager.fork(conversation.id, request, once)
  const again = await bench.manager.fork(conversation.id, request, once)
  expect([again.id, again.files]).toEqual([first.id, first.files])
  expect(first.files?.from).toBe('snapshot')
})
