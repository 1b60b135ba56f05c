import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GetDiff } from '../../src/contract/diff.ts'
import type { RewindRequest } from '../../src/contract/rewind.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { viewConversationDiff } from '../../src/conversations/view-diff.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Bench } from './fixtures.ts'
import { createEditorFiles } from '../../src/files/editor-files.ts'
import { UnfinishedFiles } from '../../src/files/jail/unfinished-files.ts'
import { AgentFiles } from '../../src/tools/files/agent-files.ts'
import { createFileEditor } from '../../src/tools/files/file-editor.ts'
import { until } from '../support/until.ts'
import { call, eventsOf, only, realShells, say, setBench, tool } from './fixtures.ts'

const SIGNAL = new AbortController().signal

/** Writes the last word of the last message to a file, and another file of that name. */
const write = tool('Write', ({ text }, { workdir }) => {
  writeFileSync(`${workdir}/kept`, String(text))
  writeFileSync(`${workdir}/${String(text)}`, 'new')
  return { output: 'written' }
})

async function setScene(): Promise<{ bench: Bench; conversation: Conversation; path: (name: string) => string }> {
  const script = ({ body: { messages } }: { body: { messages: readonly { role: string; content?: unknown }[] } }) => {
    const last = messages.at(-1)!
    if (last.role === 'tool') return { text: 'Done.' }
    if (JSON.stringify(last.content).includes('wait')) return { text: 'Done.', delay_ms: 600_000 }
    return { calls: [call('Write', { text: JSON.stringify(last.content).match(/write (\w+)/)?.[1] ?? 'none' })] }
  }
  const bench = await setBench({ script, tools: [write], deps: { createShells: realShells() } })
  const conversation = await bench.converse({ file_checkpointing: true })
  return { bench, conversation, path: (name) => `${conversation.state.settings.workdir}/${name}` }
}

const rewind = (conversation: Conversation, to_seq: number, more: Partial<RewindRequest> = {}) =>
  conversation.rewind({ to_seq, last_seq: conversation.log.head, files: true, ...more }, {})

test('files go back with the conversation, and forward again with a rewind of the rewind', async () => {
  const { bench, conversation, path } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  const before = conversation.log.head
  expect(await rewind(conversation, end)).toMatchObject({ files: { changed: ['kept'], removed: ['two'], failed: [] } })
  expect([readFileSync(path('kept'), 'utf8'), existsSync(path('two'))]).toEqual(['one', false])
  expect(only(await eventsOf(conversation), 'FilesRestored')).toMatchObject([{ to_seq: end, changed: 1, removed: 1 }])
  await rewind(conversation, before, { conversation: false })
  expect([readFileSync(path('kept'), 'utf8'), existsSync(path('two'))]).toEqual(['two', true])
  await say(conversation, 'write three')
  const { text } = bench.model.requests.at(-1)!
  expect(text).toContain('has restored the files')
  expect(text).not.toContain('write two')
})

test('the changes of the last run are not those of one that was taken back', async () => {
  const { bench, conversation } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  const changes = async () =>
    (await viewConversationDiff(conversation, GetDiff.parse({}), SIGNAL)).items.map(({ path }) => path)
  expect(await changes()).toEqual(['kept', 'two'])
  await rewind(conversation, end)
  expect(await changes()).toEqual(['kept', 'one'])
})

test('files go back alone, and the agent reads that they did', async () => {
  const { bench, conversation, path } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  await rewind(conversation, end, { conversation: false })
  expect(readFileSync(path('kept'), 'utf8')).toBe('one')
  await say(conversation, 'write three')
  const { text } = bench.model.requests.at(-1)!
  expect(text).toContain('write two')
  expect(text).toContain('has restored the files')
})

test('what somebody has changed since the last snapshot is replaced only by force, and kept in a snapshot', async () => {
  const { bench, conversation, path } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  writeFileSync(path('kept'), 'by hand')
  const { head } = conversation.log
  await expect(rewind(conversation, end)).rejects.toMatchObject({ code: 'files_changed', details: { paths: ['kept'] } })
  expect([readFileSync(path('kept'), 'utf8'), conversation.log.head]).toEqual(['by hand', head])
  await rewind(conversation, end, { force: true })
  expect(readFileSync(path('kept'), 'utf8')).toBe('one')
  await rewind(conversation, head, { conversation: false })
  expect(readFileSync(path('kept'), 'utf8')).toBe('by hand')
})

test('a run that has not begun to change files excuses no change of somebody else', async () => {
  const { bench, conversation, path } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  writeFileSync(path('kept'), 'by hand')
  const requests = bench.model.requests.length
  await conversation.post({ message: { role: 'user', content: 'wait' }, run: true })
  await until('a request', async () => bench.model.requests.length > requests)
  expect(conversation.state.status).toBe('running')
  await expect(rewind(conversation, end)).rejects.toMatchObject({ code: 'files_changed' })
  expect([readFileSync(path('kept'), 'utf8'), conversation.state.status]).toEqual(['by hand', 'running'])
})

test('a rewind of files without a workdir is refused, and says so', async () => {
  const { bench, conversation } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  const { workdir } = conversation.state.settings
  renameSync(workdir, `${workdir}-moved`)
  await expect(rewind(conversation, end)).rejects.toMatchObject({ code: 'workdir_missing' })
  renameSync(`${workdir}-moved`, workdir)
  await rewind(conversation, end)
})

test('a dry run says what would change, and changes nothing', async () => {
  const { bench, conversation, path } = await setScene()
  await using _ = bench
  await say(conversation, 'write one')
  const end = conversation.log.head
  await say(conversation, 'write two')
  const { head } = conversation.log
  const request = { to_seq: end, last_seq: head, files: true }
  const planned = await conversation.rewind(request, { dryRun: true })
  const files = { changed: ['kept'], removed: ['two'], insertions: 1, deletions: 2, changed_since: [] }
  expect(planned.files).toMatchObject(files)
  expect([readFileSync(path('kept'), 'utf8'), conversation.log.head]).toEqual(['two', head])
})

test('a rewind of nothing, or without a snapshot, is refused', async () => {
  const { bench, conversation } = await setScene()
  await using _ = bench
  const nothing = { files: false, conversation: false }
  await expect(rewind(conversation, 1, nothing)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(rewind(conversation, 1)).rejects.toMatchObject({ code: 'snapshot_not_found' })
})

test('an edit that was rewound cannot be undone: that would bring back what nobody knows', async () => {
  let path = ''
  const edit = (fields: object) => call('FileEditor', { path, ...fields })
  const replace = (old_str: string, new_str: string) => edit({ command: 'str_replace', old_str, new_str })
  const script: Script = ({ messages }) => {
    const last = messages.at(-1)!
    if (last.role === 'tool') return { text: 'Done.' }
    if (JSON.stringify(last).includes('undo it')) return { calls: [edit({ command: 'undo_edit' })] }
    return { calls: [replace('first', 'mango'), replace('mango', 'first')] }
  }
  await using bench = await setBench({
    script,
    deps: {
      createShells: realShells(),
      createTools: (_, deps) => [
        createFileEditor(
          new AgentFiles({
            ...deps,
            files: createEditorFiles(
              () => ({ forbidden: [] }),
              new UnfinishedFiles(`${deps.stateDirectory}/unfinished`),
            ),
          }),
        ),
      ],
    },
  })
  const conversation = await bench.converse({ tools: ['FileEditor'] })
  path = `${conversation.state.settings.workdir}/f`
  writeFileSync(path, 'first')
  const end = conversation.log.head
  await say(conversation, 'edit it')
  expect(only(await eventsOf(conversation), 'ToolResult').map(({ is_error }) => is_error)).toEqual([false, false])
  await conversation.rewind({ to_seq: end, last_seq: conversation.log.head }, {})
  await say(conversation, 'undo it')
  expect(readFileSync(path, 'utf8')).toBe('first')
  expect(only(await eventsOf(conversation), 'ToolResult').at(-1)).toMatchObject({ is_error: true })
  expect(bench.model.requests.at(-1)!.text).not.toContain('mango')
})
