import { chmod, mkdir, readdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { createRead } from '../../../src/tools/files/read.ts'
import { createWrite } from '../../../src/tools/files/write.ts'
import { openFiles } from '../editor/editor-fixture.ts'

async function openWrite() {
  const fixture = await openFiles(createWrite)
  const knowing = async (file_path: string) => void (await fixture.callWith(createRead, { file_path }))
  return { ...fixture, knowing, reopen: () => fixture.reopen() }
}

describe('Write', () => {
  test('creates a file together with missing directories, and writes to it again', async () => {
    const { say, read, at } = await openWrite()
    expect(await say({ file_path: at('new/deep/a'), content: 'one\n' })).toContain('created')
    expect(await say({ file_path: at('new/deep/a'), content: 'two\n' })).toContain('replaced')
    expect(await read('new/deep/a')).toBe('two\n')
  })

  test('replaces a file that was read, keeps its mode and its link, and leaves no other file', async () => {
    const { say, write, read, at, knowing, workdir } = await openWrite()
    await write('a', 'old')
    await chmod(at('a'), 0o754)
    await symlink('a', at('link'))
    await knowing('link')
    await say({ file_path: 'link', content: 'new' })
    expect(await read('a')).toBe('new')
    expect((await stat(at('a'))).mode & 0o777).toBe(0o754)
    expect(await readdir(workdir)).toEqual(['a', 'link'])
  })

  test.each([
    ['line ends', Buffer.from('a\r\nb\r\n'), 'c\nd\n', Buffer.from('c\r\nd\r\n')],
    ['mixed line ends as they are given', Buffer.from('a\r\nb\n'), 'c\nd\n', Buffer.from('c\nd\n')],
    ['UTF-16', Buffer.from('\ufeffa', 'utf16le'), 'ü', Buffer.from('\ufeffü', 'utf16le')],
    ['a byte order mark', Buffer.from('\ufeffa'), 'b', Buffer.from('\ufeffb')],
    ['Latin-1', Buffer.from([0xe4]), 'ö', Buffer.from([0xf6])],
  ])('keeps %s', async (_, before, content, after) => {
    const { say, write, bytes, knowing } = await openWrite()
    await write('a', before)
    await knowing('a')
    await say({ file_path: 'a', content })
    expect(await bytes('a')).toEqual(after)
  })

  test('writes UTF-8 where the old encoding has no bytes for the text, and says so', async () => {
    const { say, write, read, knowing } = await openWrite()
    await write('a', Buffer.from([0xe4]))
    await knowing('a')
    expect(await say({ file_path: 'a', content: '€' })).toContain('It was latin-1 and is now utf-8.')
    expect(await read('a')).toBe('€')
  })

  test('is undone by the editor', async () => {
    const { say, write, read, at, knowing, callWith } = await openWrite()
    await write('a', 'old')
    await knowing('a')
    await say({ file_path: 'a', content: 'new' })
    await callWith(createFileEditor, { command: 'undo_edit', path: at('a') })
    expect(await read('a')).toBe('old')
  })
})

describe('a file that exists is refused', () => {
  test('when it was not read', async () => {
    const { fault, write, read } = await openWrite()
    await write('a', 'old')
    expect(await fault({ file_path: 'a', content: 'new' })).toMatch(/has not been read in this conversation. Read it/)
    expect(await read('a')).toBe('old')
  })

  test('when it has changed since, and taken when it is as it was then', async () => {
    const { fault, say, write, read, knowing } = await openWrite()
    await write('a', 'old')
    await knowing('a')
    await write('a', 'other')
    expect(await fault({ file_path: 'a', content: 'new' })).toMatch(
      /has changed on disk since it was read. Read it again/,
    )
    expect(await read('a')).toBe('other')
    await write('a', 'old')
    await say({ file_path: 'a', content: 'new' })
  })

  test('unless the editor has shown or made it', async () => {
    const { say, write, at, callWith } = await openWrite()
    await write('a', 'old')
    await callWith(createFileEditor, { command: 'view', path: at('a') })
    await callWith(createFileEditor, { command: 'create', path: at('b'), file_text: 'old' })
    expect(await say({ file_path: 'a', content: 'new' })).toContain('replaced')
    expect(await say({ file_path: 'b', content: 'new' })).toContain('replaced')
  })

  test('by the same rule after a restart', async () => {
    const { call, fault, say, write, knowing, reopen } = await openWrite()
    await write('read', 'old')
    await write('unread', 'old')
    await write('changed', 'old')
    await knowing('read')
    await knowing('changed')
    await call({ file_path: 'made', content: 'made' })
    reopen()
    await write('changed', 'other')
    await say({ file_path: 'read', content: 'new' })
    await say({ file_path: 'made', content: 'new' })
    expect(await fault({ file_path: 'unread', content: 'new' })).toMatch(/has not been read/)
    expect(await fault({ file_path: 'changed', content: 'new' })).toMatch(/has changed/)
  })
})

test.each([
  ['a directory', 'directory', 'x', /is a directory/],
  ['half of a character', 'a', '\ud800', /unpaired surrogate/],
  ['more than can be edited', 'a', 'x'.repeat(10 * 1024 * 1024 + 1), /would be larger than the 10 MiB/],
])('refuses %s', async (_, file_path, content, why) => {
  const { fault, at } = await openWrite()
  await mkdir(at('directory'))
  expect(await fault({ file_path, content })).toMatch(why)
})

test('refuses a file of the server', async () => {
  const { call, server } = await openWrite()
  const { error } = await call({ file_path: join(server, 'a'), content: 'x' })
  expect(error).toMatchObject({ type: 'denied' })
  expect(await readdir(server)).toEqual([])
})
