/** Which files a moment has: of runs that were paused, of what nobody watched, and between two kinds of a path. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import type { RewindRequest } from '../../src/contract/rewind.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createAskUserQuestion } from '../../src/tools/ask-user-question.ts'
import { askCall } from './actions.ts'
import { call, eventsOf, only, realShells, say, setBench, tool, until, userText } from './fixtures.ts'

/** Writes `a`, and works on until it is stopped if it is asked to. */
const write = tool('Write', async ({ text, stays }, { workdir, signal }) => {
  writeFileSync(`${workdir}/a`, String(text))
  if (stays === 'yes') await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  return { output: 'written' }
})

/** `meanwhile`: what happens before a message that says so is answered. */
const scriptWith =
  (meanwhile: () => Promise<void>): Script =>
  async ({ messages }) => {
    const last = messages.at(-1)!
    if (last.role === 'tool') return { text: 'Done.' }
    const [, text = 'none', then = ''] =
      /write (\w+)( and stay| and ask| and look up| meanwhile)?/.exec(JSON.stringify(last.content)) ?? []
    if (then === ' meanwhile') await meanwhile()
    const calls = [call('Write', { text, stays: then === ' and stay' ? 'yes' : 'no' })]
    if (then === ' and look up') return { calls: [...calls, call('look_up')] }
    return { calls: then === ' and ask' ? [...calls, askCall()] : calls }
  }

async function open(fields: object = {}, meanwhile = async () => {}) {
  const bench = await setBench({
    script: scriptWith(meanwhile),
    tools: [write, createAskUserQuestion()],
    deps: { createShells: realShells() },
  })
  const conversation = await bench.converse({ file_checkpointing: true, ...fields })
  const { workdir } = conversation.state.settings
  return {
    bench,
    conversation,
    workdir,
    read: () => readFileSync(`${workdir}/a`, 'utf8'),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

const rewind = (conversation: Conversation, to_seq: number, more: Partial<RewindRequest> = {}) =>
  conversation.rewind({ to_seq, last_seq: conversation.log.head, files: true, ...more }, {})

async function pauseWhileItWrites({ conversation, workdir }: Awaited<ReturnType<typeof open>>): Promise<void> {
  await conversation.post(userText('write two and stay', true))
  await expect.poll(() => existsSync(`${workdir}/a`) && readFileSync(`${workdir}/a`, 'utf8')).toBe('two')
  await conversation.pause({ interrupt: true })
  await conversation.files.snapshots.at(conversation.log.head)
}

test('what a call has written before it was interrupted is in the files of that moment', async () => {
  await using opened = await open()
  const { conversation, read } = opened
  await pauseWhileItWrites(opened)
  const { head } = conversation.log
  const { content } = await conversation.files.snapshots.readFile('a', head)
  expect(content.toString()).toBe('two')
  expect(await rewind(conversation, head)).toMatchObject({ files: { changed: [], removed: [], changed_since: [] } })
  expect(read()).toBe('two')
})

test('a paused run goes back without force, and what somebody has changed meanwhile does not', async () => {
  await using opened = await open()
  const { conversation, workdir, read } = opened
  await say(conversation, 'write one')
  const end = conversation.log.head
  await pauseWhileItWrites(opened)
  writeFileSync(`${workdir}/a`, 'by hand')
  await expect(rewind(conversation, end)).rejects.toMatchObject({ code: 'files_changed', details: { paths: ['a'] } })
  writeFileSync(`${workdir}/a`, 'two')
  await rewind(conversation, end)
  expect(read()).toBe('one')
})

test('what somebody changes while a question waits is replaced only by force', async () => {
  await using opened = await open()
  const { conversation, workdir, read } = opened
  await say(conversation, 'write one')
  const end = conversation.log.head
  await conversation.post(userText('write two and ask', true))
  await until(conversation, 'RequestOpened')
  writeFileSync(`${workdir}/a`, 'by hand')
  await expect(rewind(conversation, end)).rejects.toMatchObject({ code: 'files_changed' })
  await rewind(conversation, end, { force: true })
  expect(read()).toBe('one')
})

test('while a client works, the files have what the calls before it have written', async () => {
  await using opened = await open({
    client_tools: [{ name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' } }],
  })
  const { conversation, workdir } = opened
  await conversation.post(userText('write two and look up', true))
  await until(conversation, 'RequestOpened')
  await expect.poll(() => conversation.state.status).toBe('waiting_for_client')
  writeFileSync(`${workdir}/b`, 'by hand')
  const { content } = await conversation.files.snapshots.readFile('a', conversation.log.head)
  expect(content.toString()).toBe('two')
})

test('a moment before snapshots were taken has no files, and one after it has', async () => {
  await using opened = await open({ file_checkpointing: false })
  const { bench, conversation, read } = opened
  await say(conversation, 'write one')
  const unwatched = conversation.log.head
  await say(conversation, 'write two')
  const known = conversation.log.head
  await conversation.configure({ file_checkpointing: true })
  await say(conversation, 'write three')
  await expect(rewind(conversation, unwatched)).rejects.toMatchObject({ code: 'snapshot_not_found' })
  const { files } = await bench.manager.fork(conversation.id, { at_seq: unwatched, workdir: 'copy' })
  expect(files).toMatchObject({ from: 'now' })
  await rewind(conversation, known)
  expect(read()).toBe('two')
})

test('a moment after a snapshot has failed has no files', async () => {
  await using opened = await open()
  const { conversation, read } = opened
  await say(conversation, 'write one')
  const { directory } = conversation.files.snapshots.git
  const before = conversation.log.head
  // What the run has begun in the directory has ended by then.
  await conversation.files.snapshots.at(before)
  rmSync(directory, { recursive: true })
  writeFileSync(directory, '')
  await say(conversation, 'write two')
  const unwatched = conversation.log.head
  expect(only(await eventsOf(conversation), 'Result').at(-1)).toMatchObject({ snapshot_failed: true })
  rmSync(directory)
  await conversation.files.snapshots.purge()
  await say(conversation, 'write three')
  await say(conversation, 'write four')
  await expect(rewind(conversation, before)).rejects.toMatchObject({ code: 'snapshot_not_found' })
  await rewind(conversation, unwatched)
  expect(read()).toBe('two')
})

test.each(['the removal of old snapshots', 'the snapshot of a pause'])(
  '%s that fails late does not end the snapshots of the next run',
  async (what) => {
    const late = Promise.withResolvers<never>()
    await using opened = await open({}, async () => {
      late.reject(new Error('the disk was full'))
      await expect.poll(() => opened.bench.logged.join('')).toContain('the disk was full')
    })
    const { conversation, workdir, read } = opened
    const { snapshots } = conversation.files
    if (what === 'the snapshot of a pause') {
      await conversation.post(userText('write one and stay', true))
      await expect.poll(() => existsSync(`${workdir}/a`)).toBe(true)
      vi.spyOn(snapshots, 'take').mockReturnValueOnce(late.promise)
      await conversation.pause({ interrupt: true })
    } else {
      vi.spyOn(snapshots, 'prune').mockReturnValueOnce(late.promise)
      await say(conversation, 'write one')
    }
    await say(conversation, 'write two meanwhile')
    expect(only(await eventsOf(conversation), 'Result').at(-1)).toMatchObject({ changes: { files: 1 } })
    const two = conversation.log.head
    await say(conversation, 'write three')
    await rewind(conversation, two)
    expect(read()).toBe('two')
  },
)

test('a path that a restore has removed, and not made again before a crash, was changed by nobody', async () => {
  await using opened = await open()
  const { conversation, workdir } = opened
  symlinkSync('a', `${workdir}/path`)
  await say(conversation, 'write one')
  const end = conversation.log.head
  await conversation.post(userText('write two and stay', true))
  await expect.poll(opened.read).toBe('two')
  rmSync(`${workdir}/path`)
  mkdirSync(`${workdir}/path`)
  writeFileSync(`${workdir}/path/inner`, 'new')
  await conversation.pause({ interrupt: true })
  await conversation.files.snapshots.at(conversation.log.head)
  rmSync(`${workdir}/path`, { recursive: true })
  expect(await rewind(conversation, end)).toMatchObject({ files: { changed_since: [] } })
  expect(readFileSync(`${workdir}/path`, 'utf8')).toBe('one')
})
