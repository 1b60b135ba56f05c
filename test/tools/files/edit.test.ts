import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import type { AgentFiles } from '../../../src/tools/files/agent-files.ts'
import { createEdit, createMultiEdit } from '../../../src/tools/files/edit.ts'
import { createRead } from '../../../src/tools/files/read.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import { openFiles } from '../editor/editor-fixture.ts'

/** With a file `a` of that content, which was read. */
async function openWith(make: (files: AgentFiles) => Tool, content: string | Buffer) {
  const fixture = await openFiles(make)
  await fixture.write('a', content)
  await fixture.callWith(createRead, { file_path: 'a' })
  return fixture
}

const change = (old_string: string, new_string: string, more = {}) => ({ old_string, new_string, ...more })

describe('Edit', () => {
  test('replaces the one occurrence and shows the lines around it', async () => {
    const { say, read } = await openWith(createEdit, 'one\ntwo\nthree\n')
    expect(await say({ file_path: 'a', ...change('two', 'zwei') })).toContain('     2\tzwei\n')
    expect(await read('a')).toBe('one\nzwei\nthree\n')
    await say({ file_path: 'a', ...change('zwei', 'deux') })
    expect(await read('a')).toBe('one\ndeux\nthree\n')
  })

  test.each([
    ['each occurrence', 'a b a b a', change('a', 'c'), 'c b c b c'],
    ['none that overlaps', 'aaa', change('aa', 'b'), 'ba'],
    ['by nothing', 'a,b,c', change(',', ''), 'abc'],
    ['by a text that holds the old one', 'aa', change('a', 'aa'), 'aaaa'],
    ['over mixed line ends', 'x\r\ny\n1\r\nx\ny\n2', change('x\ny', 'u\nv'), 'u\r\nv\n1\r\nu\nv\n2'],
    ['in the last line, which has no end', 'x\r\nx', change('x', 'y\nz'), 'y\r\nz\r\ny\r\nz'],
  ])('with replace_all replaces %s', async (_, before, wanted, after) => {
    const { say, read } = await openWith(createEdit, before)
    await say({ file_path: 'a', ...wanted, replace_all: true })
    expect(await read('a')).toBe(after)
  })

  test('keeps every byte that it does not change', async () => {
    const { say, bytes } = await openWith(createEdit, Buffer.from('\ufeffone\r\ntwo\nthree\r\n', 'utf16le'))
    await say({ file_path: 'a', ...change('one\ntwo', 'one\n2') })
    expect(await bytes('a')).toEqual(Buffer.from('\ufeffone\r\n2\nthree\r\n', 'utf16le'))
  })

  test('creates a file that is missing, and only such a one', async () => {
    const { say, fault, read } = await openWith(createEdit, 'x')
    await say({ file_path: 'new', ...change('', 'hello\n') })
    expect(await read('new')).toBe('hello\n')
    expect(await fault({ file_path: 'a', ...change('', 'hello\n') })).toMatch(/exists/)
  })

  test.each([
    ['text that is nowhere', change('four', 'x'), /old_string `four` did not appear verbatim/],
    ['text that is there twice', change('o', 'x'), /in lines \[1, 2\].*or set replace_all/],
    ['text that stays the same', change('one', 'one'), /are the same/],
    ['text with line numbers', change('     1\tone', 'x'), /Without the line numbers/],
  ])('refuses %s', async (_, wanted, why) => {
    const { fault, read } = await openWith(createEdit, 'one\ntwo\n')
    expect(await fault({ file_path: 'a', ...wanted })).toMatch(why)
    expect(await read('a')).toBe('one\ntwo\n')
  })

  test('refuses a file that was not read or has changed, also when the text is there', async () => {
    const { fault, write, read } = await openWith(createEdit, 'one')
    await write('b', 'one')
    expect(await fault({ file_path: 'b', ...change('one', 'two') })).toMatch(/has not been read/)
    await write('a', 'one more')
    expect(await fault({ file_path: 'a', ...change('one', 'two') })).toMatch(/has changed on disk/)
    expect([await read('a'), await read('b')]).toEqual(['one more', 'one'])
  })

  test('refuses to replace more occurrences than it has memory for', async () => {
    const { fault } = await openWith(createEdit, 'a'.repeat(100_001))
    const wanted = change('a', 'b', { replace_all: true })
    expect(await fault({ file_path: 'a', ...wanted })).toMatch(/more than 100000 times/)
  })

  test('refuses to make a file too large before it is built', async () => {
    const { fault } = await openWith(createEdit, 'a'.repeat(100_000))
    const wanted = change('a', 'b'.repeat(100_000), { replace_all: true })
    expect(await fault({ file_path: 'a', ...wanted })).toMatch(/would be larger/)
  })
})

describe('MultiEdit', () => {
  test('applies its edits in order, each to the result of the one before', async () => {
    const { say, read } = await openWith(createMultiEdit, 'a b a\n')
    const edits = [change('a', 'x', { replace_all: true }), change('x b', 'y'), change('y x', 'done')]
    expect(await say({ file_path: 'a', edits })).toContain('1. replaced 2 occurrences\n2. replaced one occurrence')
    expect(await read('a')).toBe('done\n')
  })

  test('makes none of them when one fails, and says which', async () => {
    const { fault, read, server } = await openWith(createMultiEdit, 'a b\n')
    const edits = [change('a', 'x'), change('nowhere', 'y'), change('b', 'z')]
    expect(await fault({ file_path: 'a', edits })).toMatch(/^Edit 2 of 3 failed, and none was made\. .*nowhere/)
    expect(await read('a')).toBe('a b\n')
    expect(await readdir(server)).not.toContain('edits')
  })

  test('makes none when it is interrupted', async () => {
    const { call, read } = await openWith(createMultiEdit, 'one')
    const input = { file_path: 'a', edits: [change('one', 'two')] }
    expect((await call(input, { signal: AbortSignal.abort() })).error).toMatchObject({ type: 'interrupted' })
    expect(await read('a')).toBe('one')
  })

  test('is one edit to undo', async () => {
    const { say, read, at, callWith } = await openWith(createMultiEdit, 'a b\n')
    await say({ file_path: 'a', edits: [change('a', 'x'), change('b', 'y')] })
    await callWith(createFileEditor, { command: 'undo_edit', path: at('a') })
    expect(await read('a')).toBe('a b\n')
  })

  test('creates a file with its first edit', async () => {
    const { say, read } = await openWith(createMultiEdit, '')
    await say({ file_path: 'new', edits: [change('', 'one two'), change('two', 'three')] })
    expect(await read('new')).toBe('one three')
  })

  test('refuses a file that was not read', async () => {
    const { fault, write } = await openWith(createMultiEdit, 'a')
    await write('b', 'one')
    expect(await fault({ file_path: 'b', edits: [change('one', 'two')] })).toMatch(/has not been read/)
  })
})
