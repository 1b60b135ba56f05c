import { chmod, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { createApplyPatch } from '../../../src/tools/patch/apply-patch.ts'
import { parsePatch } from '../../../src/tools/patch/parse-patch.ts'
import { patchText } from '../../../src/tools/patch/patch-text.ts'
import { growthOfSteps } from '../../support/turns.ts'
import { openFiles } from '../editor/editor-fixture.ts'
import { takeTime } from '../../support/take-time.ts'

const patchOf = (...lines: string[]) => ({ input: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') })

async function openPatch(files: Readonly<Record<string, string | Buffer>> = {}) {
  const fixture = await openFiles(createApplyPatch)
  for (const [name, content] of Object.entries(files)) await fixture.write(name, content)
  return fixture
}

async function openLong(text: string) {
  const fixture = await openPatch({ a: text })
  return { ...fixture, stat: () => stat(join(fixture.workdir, 'a')) }
}

/** What an update makes of a file. */
async function updated(before: string, ...hunks: string[]): Promise<string> {
  const { say, read } = await openPatch({ a: before })
  await say(patchOf('*** Update File: a', ...hunks))
  return await read('a')
}

test('no step of a patch grows with the lines of the file', async () => {
  const [part] = parsePatch(patchOf('*** Update File: a', '@@', '-the last', '+another').input)
  const hunks = part?.kind === 'update' ? part.hunks : []
  const { signal } = new AbortController()
  const growth = await growthOfSteps(async (times) => {
    const text = `${'x\n'.repeat(250_000 * times)}the last\n`
    expect((await patchText('a', text, hunks, signal)).endsWith('x\nanother\n')).toBe(true)
  })
  expect(growth).toBeLessThan(3)
})

test('a patch of too many lines is refused before it is taken apart', async () => {
  const { say, read } = await openPatch({ a: 'one\n' })
  const patch = patchOf('*** Update File: a', '-one', ...Array<string>(100_001).fill('+two'))
  await expect(say(patch)).rejects.toThrow('at most 100000 lines')
  expect(await read('a')).toBe('one\n')
})

test('adds, updates, moves and deletes files in one patch, and says what it did', async () => {
  const { say, read, workdir } = await openPatch({ update: 'one\ntwo\n', move: 'old\n', gone: 'x' })
  const said = await say(
    patchOf(
      '*** Add File: new/deep',
      '+hello',
      '+',
      '+world',
      '*** Update File: update',
      '@@',
      ' one',
      '-two',
      '+zwei',
      '*** Update File: move',
      '*** Move to: moved',
      '@@',
      '-old',
      '+new',
      '',
      '*** Delete File: gone',
    ),
  )
  expect(said).toBe('The patch was applied:\nA new/deep\nM update\nM move -> moved\nD gone')
  expect(await readdir(workdir)).toEqual(['moved', 'new', 'update'])
  expect(await read('new/deep')).toBe('hello\n\nworld\n')
  expect(await read('update')).toBe('one\nzwei\n')
  expect(await read('moved')).toBe('new\n')
})

describe('an update', () => {
  test.each([
    [
      'finds its lines behind the context',
      'def a\n  x\ndef b\n  x\n',
      ['@@ def b', '-  x', '+  y'],
      'def a\n  x\ndef b\n  y\n',
    ],
    [
      'finds a context within a context',
      'class A\n def f\n  x\nclass B\n def f\n  x\n',
      ['@@ class B', '@@  def f', '-  x', '+  y'],
      'class A\n def f\n  x\nclass B\n def f\n  y\n',
    ],
    ['needs no @@ before its first hunk', 'a\nb\n', [' a', '-b', '+c'], 'a\nc\n'],
    ['has several hunks in order', 'a\nb\na\nb\n', ['@@', '-a', '+1', '@@', '-a', '+2'], '1\nb\n2\nb\n'],
    ['puts lines that replace none behind the context', 'a\nb\n', ['@@ a', '+x'], 'a\nx\nb\n'],
    ['puts lines that replace none at the end', 'a\nb\n', ['@@', '+x'], 'a\nb\nx\n'],
    ['takes the last lines with End of File', 'a\nb\na\n', ['@@', '-a', '+z', '*** End of File'], 'a\nb\nz\n'],
    ['takes an empty line for a kept empty line', 'a\n\nb\n', ['@@', ' a', '', '-b', '+c'], 'a\n\nc\n'],
    ['passes by an empty line that only ends the hunk', 'a\nb\n', ['@@', '-a', '+c', '', '@@', '-b', '+d'], 'c\nd\n'],
    ['fills an empty file', '', ['@@', '+a'], 'a\n'],
    ['removes all lines', 'a\n', ['@@', '-a'], ''],
    [
      'keeps carriage returns, and gives new lines the same',
      'a\r\nb\r\n',
      ['@@', ' a', '-b', '+c', '+d'],
      'a\r\nc\r\nd\r\n',
    ],
    ['keeps that the last line has no end', 'a\nb', ['@@', '-b', '+c', '+d'], 'a\nc\nd'],
    ['prefers lines as they are over lines that only look alike', 'a \na\n', ['@@', '-a', '+b'], 'a \nb\n'],
    ['finds lines without the space at their ends', 'a  \nb\t\n', ['@@', ' a', '-b', '+c'], 'a  \nc\n'],
    ['finds lines with another indentation, and keeps it', '\ta\n\tb\n', ['@@', '   a', '-  b', '+\tc'], '\ta\n\tc\n'],
  ])('%s', async (_, before, hunks, after) => {
    expect(await updated(before, ...hunks)).toBe(after)
  })

  test('keeps mode, encoding and link, and a moved file keeps its mode', async () => {
    const utf16 = Buffer.from('\ufeffa\n', 'utf16le')
    const { say, at, bytes } = await openPatch({ a: utf16, script: '#!/bin/sh\n' })
    await chmod(at('script'), 0o755)
    await symlink('a', at('link'))
    await say(patchOf('*** Update File: link', '@@', '-a', '+ü', '*** Update File: script', '*** Move to: bin'))
    expect(await bytes('a')).toEqual(Buffer.from('\ufeffü\n', 'utf16le'))
    expect((await stat(at('bin'))).mode & 0o777).toBe(0o755)
  })

  test('works on what an earlier part of the patch has made, also by another name', async () => {
    const { say, read, at } = await openPatch({ a: 'one\n', b: 'x\n' })
    await symlink('a', at('link'))
    await say(
      patchOf(
        '*** Update File: a',
        '@@',
        '-one',
        '+two',
        '*** Update File: link',
        '@@',
        '-two',
        '+three',
        '*** Delete File: b',
        '*** Add File: b',
        '+y',
      ),
    )
    expect([await read('a'), await read('b')]).toEqual(['three\n', 'y\n'])
  })
})

test.each([
  ["<<'EOF'", 'EOF'],
  ["apply_patch <<'EOF'", 'EOF'],
  ['\n', '\r\n'],
])('takes a patch between %j and %j', async (before, after) => {
  const { call, read } = await openPatch()
  const { input } = patchOf('*** Add File: a', '+x')
  await call({ input: `${before}\n${input}\n${after}` })
  expect(await read('a')).toBe('x\n')
})

describe('nothing is changed', () => {
  test.each([
    ['no markers', ['no patch'], /first line of a patch must be "\*\*\* Begin Patch"/],
    ['no end', ['*** Begin Patch', '*** Delete File: a'], /last line of a patch must be "\*\*\* End Patch"/],
    ['no files', patchOf().input.split('\n'), /names no file/],
    ['an unknown header', patchOf('*** Rename File: a').input.split('\n'), /line 2, "\*\*\* Rename File: a": expected/],
    ['a header without a path', patchOf('*** Delete File: ').input.split('\n'), /no path/],
    ['a new file with a line without +', patchOf('*** Add File: b', '+x', 'y').input.split('\n'), /line 4, "y"/],
    [
      'a hunk with a line of another kind',
      patchOf('*** Update File: a', '@@', 'y').input.split('\n'),
      /line 4, "y".*begins with " "/,
    ],
    ['an update without a change', patchOf('*** Update File: a').input.split('\n'), /changes nothing/],
    ['a hunk without lines', patchOf('*** Update File: a', '@@ x').input.split('\n'), /has no lines/],
    [
      'lines that are not there',
      patchOf('*** Update File: a', '@@', ' one', '-two').input.split('\n'),
      /Hunk 1 of a does not fit.*\none\ntwo$/s,
    ],
    [
      'a context that is not there',
      patchOf('*** Update File: a', '@@ def f', '-one').input.split('\n'),
      /@@ def f\none$/,
    ],
    [
      'hunks in the wrong order',
      patchOf('*** Update File: a', '@@', '-end', '@@', '-one').input.split('\n'),
      /Hunk 2 of a/,
    ],
    ['a new file that exists', patchOf('*** Add File: a', '+x').input.split('\n'), /a exists already/],
    [
      'a move onto a file',
      patchOf('*** Update File: a', '*** Move to: other').input.split('\n'),
      /other exists already/,
    ],
    ['a file that is missing', patchOf('*** Delete File: missing').input.split('\n'), /does not exist/],
    ['a directory', patchOf('*** Delete File: .').input.split('\n'), /is a directory/],
    [
      'more files than the permission gate looks at',
      patchOf(...Array.from({ length: 501 }, (_, at) => `*** Delete File: ${at}`)).input.split('\n'),
      /at most 500 files/,
    ],
    [
      'more hunks than can be searched for',
      patchOf('*** Update File: a', ...Array.from({ length: 1001 }, () => '@@\n-one\n+one')).input.split('\n'),
      /at most 1000 hunks/,
    ],
  ])('by a patch with %s', async (_, lines, why) => {
    const { fault, read, workdir } = await openPatch({ a: 'one\nend\n', other: 'x' })
    expect(await fault({ input: lines.join('\n') })).toMatch(why)
    expect(await read('a')).toBe('one\nend\n')
    expect(await readdir(workdir)).toEqual(['a', 'other'])
  })

  test('when the call is interrupted during a long search', async () => {
    // Each hunk is searched for exactly in all of the file, before its form without white space is found at once.
    const text = 'a \n'.repeat(3_000_000)
    const { call, stat: statOf } = await openLong(text)
    const abort = new AbortController()
    const running = call(patchOf('*** Update File: a', ...Array.from({ length: 1000 }, () => '@@\n-a\n+b')), {
      signal: abort.signal,
    })
    void takeTime(100).then(() => abort.abort())
    expect((await running).error).toMatchObject({ type: 'interrupted' })
    expect((await statOf()).size).toBe(text.length)
  })

  test('when only the last part does not fit', async () => {
    const { fault, read, workdir } = await openPatch({ a: 'one\n' })
    const parts = ['*** Update File: a', '@@', '-one', '+two', '*** Add File: b', '+x', '*** Delete File: missing']
    await fault(patchOf(...parts))
    expect(await readdir(workdir)).toEqual(['a'])
    expect(await read('a')).toBe('one\n')
  })

  test('when one of the files may not be written: what was written before is taken back', async () => {
    const { call, callWith, read, at, workdir, readonly } = await openPatch({ a: 'one\n', gone: 'x' })
    await writeFile(join(readonly, 'c'), 'one\n')
    await chmod(at('a'), 0o640)
    const parts = ['*** Update File: a', '@@', '-one', '+two', '*** Add File: b', '+x']
    const last = [`*** Update File: ${join(readonly, 'c')}`, '@@', '-one', '+two', '*** Delete File: gone']
    expect((await call(patchOf(...parts, ...last))).error).toMatchObject({ type: 'denied' })
    expect(await readdir(workdir)).toEqual(['a', 'gone'])
    expect(await read('a')).toBe('one\n')
    expect((await stat(at('a'))).mode & 0o777).toBe(0o640)
    const undone = await callWith(createFileEditor, { command: 'undo_edit', path: at('a') })
    expect(undone.error?.message).toMatch(/No edit history/)
  })
})

test('each file of a patch can be undone by the editor', async () => {
  const { say, read, at, callWith, workdir } = await openPatch({ a: 'one\n' })
  await say(patchOf('*** Update File: a', '@@', '-one', '+two', '*** Add File: b', '+x'))
  for (const name of ['a', 'b']) await callWith(createFileEditor, { command: 'undo_edit', path: at(name) })
  expect(await read('a')).toBe('one\n')
  expect(await readdir(workdir)).toEqual(['a'])
})

test('a file of the server is refused', async () => {
  const { call, server } = await openPatch()
  const { error } = await call(patchOf(`*** Add File: ${join(server, 'x')}`, '+x'))
  expect(error).toMatchObject({ type: 'denied' })
})
