/** Results of editing tools say what they have changed, as patches that git applies to the files as they were. */
import { execFileSync } from 'node:child_process'
import { chmod, cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FileEdit } from '../../../src/contract/events/file-edit.ts'
import type { ToolOutcome } from '../../../src/state/tool-call.ts'
import { fileEditsOf } from '../../../src/tools/editor/file-edits.ts'
import { gitPatch } from '../../../src/tools/editor/git-patch.ts'
import { createEdit, createMultiEdit } from '../../../src/tools/files/edit.ts'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { createRead } from '../../../src/tools/files/read.ts'
import { createWrite } from '../../../src/tools/files/write.ts'
import { createApplyPatch } from '../../../src/tools/patch/apply-patch.ts'
import { effort } from '../../support/patience.ts'
import { growthOfSteps } from '../../support/turns.ts'
import { openFiles } from '../editor/editor-fixture.ts'

const patchOf = (...lines: string[]) => ({ input: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') })
const changesIn = ({ changes = [] }: ToolOutcome) => changes.map((change) => FileEdit.parse(change))

/** By name: the content and whether it can be executed, of all files below. */
async function treeOf(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const read = async (path: string) => {
    const mode = (await stat(path)).mode & 0o100 ? 'x' : '-'
    return [path.slice(directory.length + 1), mode + (await readFile(path, 'latin1'))] as const
  }
  return Object.fromEntries(await Promise.all(files.map(read)))
}

/** Makes the call, and returns its changes after git has made the same of a copy of the files as they were. */
async function changed(workdir: string, call: () => Promise<ToolOutcome>) {
  const copy = await mkdtemp(join(tmpdir(), 'before-'))
  try {
    await cp(workdir, copy, { recursive: true })
    const changes = changesIn(await call())
    const patch = changes.map((change) => change.patch).join('')
    if (patch !== '') execFileSync('git', ['apply', '-'], { cwd: copy, input: patch })
    expect(await treeOf(copy)).toEqual(await treeOf(workdir))
    return changes
  } finally {
    await rm(copy, { recursive: true })
  }
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join('')

describe('the changes of', () => {
  test('Write are the whole of a new file, and the difference to an old one', async () => {
    const { workdir, call, callWith } = await openFiles(createWrite)
    const made = await changed(workdir, () => call({ file_path: 'new/deep', content: 'one\ntwo' }))
    expect(made).toEqual([
      {
        operation: 'add',
        path: 'new/deep',
        patch:
          'diff --git a/new/deep b/new/deep\nnew file mode 100644\n--- /dev/null\n+++ b/new/deep\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n',
      },
    ])
    await callWith(createRead, { file_path: 'new/deep' })
    const [replaced] = await changed(workdir, () => call({ file_path: 'new/deep', content: 'one\n2\n' }))
    expect(replaced).toMatchObject({ operation: 'modify', path: 'new/deep' })
  })

  test('Edit and MultiEdit are hunks with three lines around them', async () => {
    const { workdir, call, callWith, write } = await openFiles(createMultiEdit)
    await write('a', numbered(40))
    await callWith(createRead, { file_path: 'a' })
    const edits = [
      { old_string: 'line 10\n', new_string: 'ten\n' },
      { old_string: 'line 30\n', new_string: '' },
    ]
    const [both] = await changed(workdir, () => call({ file_path: 'a', edits }))
    expect(both!.patch!.match(/^@@.*@@$/gm)).toEqual(['@@ -7,7 +7,7 @@', '@@ -27,7 +27,6 @@'])
    const [one] = await changed(workdir, () =>
      callWith(createEdit, { file_path: 'a', old_string: 'ten', new_string: 'TEN' }),
    )
    expect(one!.patch).toContain('@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-ten\n+TEN\n line 11\n')
  })

  test('FileEditor are there for each command that changes something, and an undo of a creation deletes', async () => {
    const { workdir, call } = await openFiles(createFileEditor)
    const use = async (input: object) => {
      const [change] = await changed(workdir, () => call({ path: 'a', ...input }))
      return change?.operation
    }
    expect(await use({ command: 'create', file_text: 'one\r\ntwo\r\n' })).toBe('add')
    expect(await use({ command: 'view' })).toBe(undefined)
    expect(await use({ command: 'insert', insert_line: 1, new_str: 'and' })).toBe('modify')
    expect(await use({ command: 'undo_edit' })).toBe('modify')
    expect(await use({ command: 'undo_edit' })).toBe('delete')
  })

  test('apply_patch are one for each file, with moves and modes', async () => {
    const { workdir, call, write, at } = await openFiles(createApplyPatch)
    await write('update', 'one\ntwo\n')
    await write('move', numbered(9))
    await write('gone', 'x')
    await chmod(at('move'), 0o755)
    await chmod(at('gone'), 0o755)
    const changes = await changed(workdir, () =>
      call(
        patchOf(
          '*** Add File: new',
          '+hello',
          '*** Update File: update',
          '-two',
          '+zwei',
          '*** Update File: move',
          '*** Move to: to "here"/ü',
          '-line 5',
          '+five',
          '*** Delete File: gone',
        ),
      ),
    )
    expect(changes.map(({ operation, path, old_path }) => [operation, path, old_path])).toEqual([
      ['add', 'new', undefined],
      ['modify', 'update', undefined],
      ['move', 'to "here"/ü', 'move'],
      ['delete', 'gone', undefined],
    ])
  })
})

test('a call that fails, or changes nothing, has no changes', async () => {
  const { call, write, at } = await openFiles(createApplyPatch)
  await write('a', 'one\n')
  await write('kept', 'two\n')
  await chmod(at('.'), 0o755)
  expect(await call(patchOf('*** Update File: a', '-two', '+three'))).not.toHaveProperty('changes')
  expect(await call(patchOf('*** Update File: a', '-one', '+one'))).not.toHaveProperty('changes')
})

test('a file outside the workdir has its absolute path, and no patch, which git would not apply', async () => {
  const { call, workdir } = await openFiles(createWrite)
  const path = join(workdir, '../beside')
  expect(changesIn(await call({ file_path: path, content: 'x\n' }))).toEqual([{ path, operation: 'add' }])
  expect(await readFile(path, 'utf8')).toBe('x\n')
})

test('secrets are redacted in patches and paths', async () => {
  const { call } = await openFiles(createWrite)
  const [change] = changesIn(await call({ file_path: 'hunter2-hunter2', content: 'a\nhunter2-hunter2\n' }))
  expect(change!.path).toBe('<secret:PIN>')
  expect(change!.patch).toContain('+<secret:PIN>\n')
  expect(JSON.stringify(change)).not.toContain('hunter2-hunter2')
})

test('a secret of several short lines is redacted, although each line of a patch has a sign before it', async () => {
  const redact = async (text: string) => text.replaceAll('apple\nriver\n', '<secret:WORDS>\n')
  const file = {
    path: '/w/a',
    before: Buffer.from('one\n'),
    after: Buffer.from('one\napple\nriver\nend\n'),
    mode: 0o644,
  }
  const signal = new AbortController().signal
  const [edit] = await fileEditsOf([file], { workdir: '/w', redact, signal })
  expect(edit!.patch).toContain(' one\n+<secret:WORDS>\n+end\n')
  expect(edit!.patch).not.toMatch(/apple|river/)
})

test('a redaction that makes a patch longer counts for its limit, which is in bytes', async () => {
  const signal = new AbortController().signal
  const editOf = async (content: string, redact: (text: string) => Promise<string>) => {
    const file = { path: '/w/a', before: undefined, after: Buffer.from(content), mode: 0o644 }
    return (await fileEditsOf([file], { workdir: '/w', redact, signal }))[0]!
  }
  const lines = 'secret\n'.repeat(4000)
  expect(await editOf(lines, async (text) => text)).toHaveProperty('patch')
  expect(await editOf(lines, async (text) => text.replaceAll('secret', '<secret:LONG_NAME>'))).not.toHaveProperty(
    'patch',
  )
  expect(await editOf('€'.repeat(30_000), async (text) => text)).not.toHaveProperty('patch')
})

test('after an interrupt files are listed without the work of their patches', async () => {
  const file = { path: '/w/a', before: undefined, after: Buffer.from('x\n'), mode: 0o644 }
  const edits = await fileEditsOf([file], { workdir: '/w', redact: async (text) => text, signal: AbortSignal.abort() })
  expect(edits).toEqual([{ operation: 'add', path: 'a' }])
})

test('a file that is no UTF-8 text is binary, and has no patch', async () => {
  const { call, callWith, write, at } = await openFiles(createEdit)
  await write('a', Buffer.from('gr\xfc\xdfe\n', 'latin1'))
  await callWith(createRead, { file_path: 'a' })
  const outcome = await call({ file_path: 'a', old_string: 'gr', new_string: 'GR' })
  expect(changesIn(outcome)).toEqual([{ operation: 'modify', path: 'a', binary: true }])
  expect(await readFile(at('a'), 'latin1')).toBe('GR\xfc\xdfe\n')
})

test('all patches of a call have at most 64 KiB; a file whose patch does not fit is listed without it', async () => {
  const { call, write } = await openFiles(createApplyPatch)
  await write('large', 'x\n')
  const lines = Array.from({ length: 7000 }, (_, at) => `+line ${at}`)
  const outcome = await call(patchOf('*** Add File: first', ...lines, '*** Update File: large', ' x', ...lines))
  const changes = changesIn(outcome)
  expect(changes.map(({ path, patch }) => [path, patch !== undefined])).toEqual([
    ['first', false],
    ['large', false],
  ])
  const small = changesIn(await call(patchOf('*** Add File: a', ...lines.slice(0, 4000), '*** Add File: b', '+x')))
  expect(small.map(({ patch }) => patch !== undefined)).toEqual([true, true])
})

test('property: git makes the new text of the old one with the patch', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patched-'))
  const path = join(directory, 'f')
  const line = fc.constantFrom('a', 'b', '', ' ', 'c\r', '-x', '+y', '\\ No', '@@ -1 +1 @@', 'ü', '\u2028')
  const text = fc
    .tuple(fc.array(line, { maxLength: 40 }), fc.boolean())
    .map(([lines, isOpen]) => lines.map((each) => `${each}\n`).join('') + (isOpen ? 'open' : ''))
  const property = fc.asyncProperty(text, text, async (before, after) => {
    fc.pre(before !== '' && after !== '')
    await writeFile(path, before)
    const head = { path: 'f', mode: '100644' }
    const patch = await gitPatch(before, after, head, 65_536)
    if (before !== after) execFileSync('git', ['apply', '--unidiff-zero', '-'], { cwd: directory, input: patch })
    expect(await readFile(path, 'utf8')).toBe(after)
  })
  await fc.assert(property, { numRuns: effort(25, 2000) })
  await rm(directory, { recursive: true })
})

test('a patch of many changes replaces all lines between them, and git applies it', async () => {
  const { workdir, call, callWith, write } = await openFiles(createWrite)
  await write('a', numbered(3000))
  await callWith(createRead, { file_path: 'a' })
  const other = Array.from({ length: 3000 }, (_, at) => (at % 2 ? `line ${at + 1}\n` : `${at}\n`)).join('')
  const [change] = await changed(workdir, () => call({ file_path: 'a', content: other }))
  expect(change!.patch!.match(/^@@/gm)).toHaveLength(1)
})

test('no step of a patch grows with the lines of the file', async () => {
  const growth = await growthOfSteps(async (times) => {
    const text = 'x\n'.repeat(250_000 * times)
    const head = { path: 'f', mode: '100644' }
    const patch = await gitPatch(`${text}one\n${text}`, `${text}two\n${text}`, head, 65_536)
    expect(patch).toContain('-one\n+two\n')
  })
  expect(growth).toBeLessThan(3)
})
