import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { MAX_FILE_BYTES, MAX_IMAGE_BYTES } from '../../../src/tools/editor/editor-content.ts'
import { MAX_LINE_CHARS, MAX_VIEW_CHARS } from '../../../src/tools/editor/file-view.ts'
import { openEditor } from './editor-fixture.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const numbers = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join('')

describe('view', () => {
  test('shows a file with numbered lines, as `cat -n` does', async () => {
    const { write, say, at, workdir } = await openEditor()
    await write('a', '\tone\n\n  three ü\n')
    const shown = await say({ command: 'view', path: at('a') })
    const { stdout } = await promisify(execFile)('cat', ['-n', at('a')])
    expect(shown).toBe(`Here's the result of running \`cat -n\` on ${workdir}/a:\n${stdout}`)
  })

  test('takes a relative path as one in the working directory', async () => {
    const { write, say, at } = await openEditor()
    await write('a', 'x')
    expect(await say({ command: 'view', path: './a' })).toContain(`on ${at('a')}:`)
  })

  test.each([
    [
      [2, 3],
      ['     2\tline 2', '     3\tline 3'],
    ],
    [
      [4, -1],
      ['     4\tline 4', '     5\tline 5'],
    ],
    [[5, 5], ['     5\tline 5']],
  ])('shows the lines %j', async (view_range, lines) => {
    const { write, say } = await openEditor()
    await write('a', numbers(5))
    expect((await say({ command: 'view', path: 'a', view_range })).split('\n').slice(1, -1)).toEqual(lines)
  })

  test('shows up to the last line where the range goes beyond it, and says so', async () => {
    const { write, say } = await openEditor()
    await write('a', numbers(3))
    expect(await say({ command: 'view', path: 'a', view_range: [2, 9] })).toMatch(
      /^NOTE: We only show up to 3 .*\n.*\n {5}2\tline 2\n {5}3\tline 3\n$/,
    )
  })

  test.each([
    [[0, 2], 'Its first element `0` should be within the range of lines of the file: [1, 3]'],
    [[4, -1], 'Its first element `4` should be within the range of lines of the file: [1, 3]'],
    [[3, 2], 'Its second element `2` should be -1, or greater than or equal to the first element `3`'],
    [[2, -2], 'Its second element `-2`'],
    [[1], 'It should be a list of two integers'],
    [[1, 2, 3], 'It should be a list of two integers'],
  ])('refuses the lines %j', async (view_range, why) => {
    const { write, fault } = await openEditor()
    await write('a', numbers(3))
    expect(await fault({ command: 'view', path: 'a', view_range })).toContain(why)
  })

  test('says that a file is empty', async () => {
    const { write, say } = await openEditor()
    await write('a', '')
    for (const view_range of [undefined, [1, -1]]) {
      expect(await say({ command: 'view', path: 'a', view_range })).toMatch(/is empty/)
    }
  })

  test('cuts long output at a line, says where to continue, and continues there', async () => {
    const { write, call, say } = await openEditor()
    await write('a', numbers(10_000))
    const outcome = await call({ command: 'view', path: 'a' })
    expect(outcome.truncated).toBe(true)
    const output = outcome.output as string
    expect(output.length).toBeLessThan(MAX_VIEW_CHARS + 500)
    const [, from, to] = /see them with view_range \[(\d+), (\d+)\]\.\]\n$/.exec(output)!
    expect(output).toContain(`\n${String(Number(from) - 1).padStart(6)}\tline ${Number(from) - 1}\n[`)
    expect(to).toBe('10000')
    expect(await say({ command: 'view', path: 'a', view_range: [Number(from), Number(to)] })).toContain(
      `\n${from!.padStart(6)}\tline ${from}\n`,
    )
  })

  test('cuts a long line, and says how much is missing', async () => {
    const { write, call } = await openEditor()
    await write('a', `${'x'.repeat(1_000_000)}\nnext\n`)
    const { output, truncated } = await call({ command: 'view', path: 'a' })
    expect(output).toContain(`x [… ${1_000_000 - MAX_LINE_CHARS} more characters in this line]\n     2\tnext\n`)
    expect(truncated).toBe(true)
  })

  test('takes secrets out before a long line is cut: half of one would not be found later', async () => {
    const { say, write } = await openEditor()
    await write('a', `${'x'.repeat(MAX_LINE_CHARS - 8)}hunter2-hunter2`)
    const output = await say({ command: 'view', path: 'a' })
    expect(output).not.toContain('hunter')
    expect(output).toContain('x<secret: [… ')
  })

  test('shows a directory two levels deep, and reports hidden entries', async () => {
    const { workdir, say, write } = await openEditor()
    await mkdir(join(workdir, 'src/deep/deeper'), { recursive: true })
    for (const name of ['README', 'src/a.ts', '.git', '.env']) await write(name, '')
    expect((await say({ command: 'view', path: workdir })).split('\n')).toEqual([
      `Here's the files and directories up to 2 levels deep in ${workdir}, excluding hidden items:`,
      `${workdir}/`,
      `${workdir}/README`,
      `${workdir}/src/`,
      `${workdir}/src/a.ts`,
      `${workdir}/src/deep/`,
      '',
      `2 hidden files/directories in this directory are excluded. You can use 'ls -la ${workdir}' to see them.`,
      '',
    ])
  })

  test.each([
    ['png', PNG, 'image/png'],
    ['whatever', PNG, 'image/png'],
    ['jpg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0]), 'image/jpeg'],
    ['gif', Buffer.from('GIF89a\x01\x00'), 'image/gif'],
    ['webp', Buffer.from('RIFF\x10\x00\x00\x00WEBPVP8 '), 'image/webp'],
  ])('shows an image as one, by what it is and not by its name: %s', async (extension, bytes, media_type) => {
    const { tool, write, call, at } = await openEditor()
    await write(`a.${extension}`, bytes)
    const { output, error } = await call({ command: 'view', path: at(`a.${extension}`) })
    expect(error).toBeUndefined()
    expect(tool.output!.parse(output)).toEqual([
      { type: 'text', text: expect.stringContaining(media_type) },
      { type: 'image', media_type, data: bytes.toString('base64') },
    ])
  })

  test('shows text that is only named like an image as text', async () => {
    const { write, say } = await openEditor()
    await write('a.png', 'no image')
    expect(await say({ command: 'view', path: 'a.png' })).toContain('     1\tno image\n')
  })
})

describe('create', () => {
  test('writes the text as it is, with the directories it needs', async () => {
    const { say, bytes, at } = await openEditor()
    expect(await say({ command: 'create', path: at('x/y/a'), file_text: 'ü\r\n\tend' })).toBe(
      `File created successfully at: ${at('x/y/a')}`,
    )
    expect(await bytes('x/y/a')).toEqual(Buffer.from('ü\r\n\tend'))
  })

  test('never overwrites', async () => {
    const { write, fault, read, at } = await openEditor()
    await write('a', 'mine')
    expect(await fault({ command: 'create', path: 'a', file_text: 'yours' })).toMatch(
      `File already exists at: ${at('a')}. Cannot overwrite files using command \`create\``,
    )
    expect(await read('a')).toBe('mine')
  })

  test('refuses a text with a lone surrogate', async () => {
    const { fault, workdir } = await openEditor()
    expect(await fault({ command: 'create', path: 'a', file_text: '\ud83d' })).toMatch(/half of a character/)
    expect(await readdir(workdir)).toEqual([])
  })
})

describe('str_replace', () => {
  test('replaces the one match, and shows the lines around it', async () => {
    const { write, say, read, at } = await openEditor()
    await write('a', numbers(20))
    const shown = await say({ command: 'str_replace', path: 'a', old_str: 'line 10\n', new_str: 'ten\nand a half\n' })
    expect(await read('a')).toBe(numbers(20).replace('line 10\n', 'ten\nand a half\n'))
    expect(shown.split('\n')).toEqual([
      `The file ${at('a')} has been edited. Here's the result of running \`cat -n\` on a snippet of ${at('a')}:`,
      ...['line 6', 'line 7', 'line 8', 'line 9', 'ten', 'and a half', 'line 11', 'line 12', 'line 13', 'line 14'].map(
        (line, i) => `${String(i + 6).padStart(6)}\t${line}`,
      ),
      'Review the changes and make sure they are as expected. Edit the file again if necessary.',
    ])
  })

  test('deletes where no new text is given', async () => {
    const { write, call, read } = await openEditor()
    await write('a', 'one\ntwo\n')
    await call({ command: 'str_replace', path: 'a', old_str: 'one\n' })
    expect(await read('a')).toBe('two\n')
    expect((await call({ command: 'str_replace', path: 'a', old_str: 'two\n' })).output).toContain('empty now')
  })

  test('takes the text as text: nothing in it is a pattern', async () => {
    const { write, call, read } = await openEditor()
    await write('a', 'a.*b $& (x)\n')
    await call({ command: 'str_replace', path: 'a', old_str: '.*b $& (', new_str: '$1$&\\' })
    expect(await read('a')).toBe('a$1$&\\x)\n')
  })

  test('refuses more than one match, and names the lines of all', async () => {
    const { write, fault, read } = await openEditor()
    await write('a', 'x\ny\nx x\n\nx\n')
    expect(await fault({ command: 'str_replace', path: 'a', old_str: 'x', new_str: 'z' })).toMatch(
      /Multiple occurrences of old_str in lines \[1, 3, 5\]/,
    )
    expect(await read('a')).toBe('x\ny\nx x\n\nx\n')
  })

  test('refuses matches that overlap: which one is meant would be a guess', async () => {
    const { write, fault } = await openEditor()
    await write('a', '}\r\n}\r\n}\r\n')
    expect(await fault({ command: 'str_replace', path: 'a', old_str: '}\n}\n', new_str: '}\n' })).toMatch(
      /in lines \[1, 2\]/,
    )
  })

  test.each([
    ['other indentation', 'if x:\n\ty()\n', 'if x:\n    y()', /differs only in whitespace is at line 1/],
    [
      'the line numbers of a view',
      'a\nb\nc\n',
      '     2\tb\n     3\tc',
      /Without the line numbers of the view it does, at line 2/,
    ],
    ['other line ends', 'a\nb\n', 'a\r\nb', /With other line ends it does, at line 1/],
    [
      'another continuation',
      'x\nbegin\n  end\n',
      'begin\n  middle',
      /Its first line is at line 2, but what follows is different/,
    ],
    ['a hidden value', 'k = 1234\n', 'k = <secret:K>', /the file has the hidden value/],
    ['nothing like it', 'a\n', 'zzz', /did not appear verbatim in .*View the file/],
  ])('says why it found nothing: %s', async (_, content, old_str, why) => {
    const { write, fault, read } = await openEditor()
    await write('a', content)
    expect(await fault({ command: 'str_replace', path: 'a', old_str, new_str: 'new' })).toMatch(why)
    expect(await read('a')).toBe(content)
  })

  test.each([
    [{ old_str: 'a', new_str: 'a' }, /must be different/],
    [{ old_str: '', new_str: 'a' }, /`old_str` is empty/],
    [{ new_str: 'a' }, /`old_str` is required for command: str_replace/],
  ])('refuses %j', async (input, why) => {
    const { write, fault } = await openEditor()
    await write('a', 'a')
    expect(await fault({ command: 'str_replace', path: 'a', ...input })).toMatch(why)
  })
})

describe('insert', () => {
  test.each([
    [0, 'new', 'new\none\ntwo\n'],
    [1, 'new', 'one\nnew\ntwo\n'],
    [2, 'new', 'one\ntwo\nnew\n'],
    [1, 'new\n', 'one\nnew\ntwo\n'],
    [1, 'new\n\n', 'one\nnew\n\ntwo\n'],
    [1, '', 'one\n\ntwo\n'],
  ])('after line %i, of %j', async (insert_line, new_str, expected) => {
    const { write, call, read } = await openEditor()
    await write('a', 'one\ntwo\n')
    expect((await call({ command: 'insert', path: 'a', insert_line, new_str })).error).toBeUndefined()
    expect(await read('a')).toBe(expected)
  })

  test('after a last line without a line end, as a new line without one', async () => {
    const { write, call, read } = await openEditor()
    await write('a', 'one\r\ntwo')
    await call({ command: 'insert', path: 'a', insert_line: 2, new_str: 'new\n' })
    expect(await read('a')).toBe('one\r\ntwo\r\nnew')
  })

  test('into an empty file', async () => {
    const { write, say, read } = await openEditor()
    await write('a', '')
    expect(await say({ command: 'insert', path: 'a', insert_line: 0, new_str: 'one' })).toContain('     1\tone\n')
    expect(await read('a')).toBe('one\n')
  })

  test.each([
    [
      { insert_line: 3, new_str: 'x' },
      /`insert_line`: 3\. It should be within the range of lines of the file: \[0, 2\]/,
    ],
    [{ insert_line: -1, new_str: 'x' }, /`insert_line`: -1/],
    [{ new_str: 'x' }, /`insert_line` is required for command: insert/],
    [{ insert_line: 1 }, /`new_str` is required for command: insert/],
  ])('refuses %j', async (input, why) => {
    const { write, fault } = await openEditor()
    await write('a', 'one\ntwo\n')
    expect(await fault({ command: 'insert', path: 'a', ...input })).toMatch(why)
  })
})

describe('undo_edit', () => {
  test('takes back edit after edit, down to the creation, also after a restart', async () => {
    const { call, say, read, fault, workdir, reopen } = await openEditor()
    const path = 'a'
    await call({ command: 'create', path, file_text: 'one\n' })
    await call({ command: 'str_replace', path, old_str: 'one', new_str: 'two' })
    await call({ command: 'insert', path, insert_line: 1, new_str: 'three' })
    expect(await read('a')).toBe('two\nthree\n')
    reopen()
    expect(await say({ command: 'undo_edit', path })).toMatch(
      /undone successfully\. Here's the result .*\n {5}1\ttwo\n$/s,
    )
    expect(await read('a')).toBe('two\n')
    reopen()
    await say({ command: 'undo_edit', path })
    expect(await read('a')).toBe('one\n')
    expect(await say({ command: 'undo_edit', path })).toMatch(/It had created the file, which is removed now/)
    expect(await readdir(workdir)).toEqual([])
    expect(await fault({ command: 'undo_edit', path })).toMatch(/does not exist/)
  })

  test('belongs to the file, under any name that leads to it', async () => {
    const { call, read, write, workdir } = await openEditor()
    await write('a', 'one')
    await symlink('a', join(workdir, 'l'))
    await call({ command: 'str_replace', path: 'l', old_str: 'one', new_str: 'two' })
    await call({ command: 'undo_edit', path: 'a' })
    expect(await read('a')).toBe('one')
  })

  test('brings back bytes, not a text like them', async () => {
    const { call, bytes, write } = await openEditor()
    const before = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('a\r\nb\nc')])
    await write('a', before)
    await call({ command: 'str_replace', path: 'a', old_str: 'a\nb\n', new_str: '' })
    await call({ command: 'undo_edit', path: 'a' })
    expect(await bytes('a')).toEqual(before)
  })

  test('refuses where something else has changed the file since: that would be lost', async () => {
    const { call, fault, read, write, at } = await openEditor()
    await write('a', 'one')
    await call({ command: 'str_replace', path: 'a', old_str: 'one', new_str: 'two' })
    await write('a', 'theirs')
    expect(await fault({ command: 'undo_edit', path: 'a' })).toMatch(/changed by something else since its last edit/)
    expect(await read('a')).toBe('theirs')
    await rm(at('a'))
    expect(await fault({ command: 'undo_edit', path: 'a' })).toMatch(/removed since its last edit/)
  })

  test('skips an edit that was recorded and never made', async () => {
    const { call, read, server, at } = await openEditor()
    await call({ command: 'create', path: 'a', file_text: 'one' })
    await call({ command: 'str_replace', path: 'a', old_str: 'one', new_str: 'two' })
    // As if the process had been killed right before the file was replaced: the note says 'two' -> 'three'.
    const [newest] = (await readdir(join(server, 'edits'))).sort().toReversed()
    const [, key] = newest!.split('.')
    const header = { path: at('a'), existed: true, size: 3, after: 'of three' }
    await writeFile(join(server, 'edits', `3.${key}.3`), `${JSON.stringify(header)}\ntwo`)
    await call({ command: 'undo_edit', path: 'a' })
    expect(await read('a')).toBe('one')
  })

  test('says that there is nothing to undo', async () => {
    const { fault, write, at } = await openEditor()
    await write('a', 'x')
    expect(await fault({ command: 'undo_edit', path: 'a' })).toBe(`No edit history found for ${at('a')}.`)
  })

  test('an edit that failed leaves nothing to undo', async () => {
    const { call, fault, write } = await openEditor()
    await write('a', 'x')
    await call({ command: 'str_replace', path: 'a', old_str: 'y', new_str: 'z' })
    expect(await fault({ command: 'undo_edit', path: 'a' })).toMatch(/No edit history/)
  })
})

describe('what an edit does not touch stays as it is, byte for byte:', () => {
  const latin = (text: string) => Buffer.from(text, 'latin1')
  const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')

  test.each([
    [
      'Windows line ends',
      Buffer.from('one\r\ntwo\r\nthree\r\n'),
      'two\nthree',
      '2\n3',
      Buffer.from('one\r\n2\r\n3\r\n'),
    ],
    [
      'mixed line ends, also inside the match',
      Buffer.from('one\r\ntwo\nthree\r\nfour\n'),
      'two\nthree\nfour',
      'two\nTHREE\nfour',
      Buffer.from('one\r\ntwo\nTHREE\r\nfour\n'),
    ],
    [
      'line ends of a new line, by where it stands',
      Buffer.from('one\r\ntwo\n'),
      'one',
      'one\nmore',
      Buffer.from('one\r\nmore\r\ntwo\n'),
    ],
    [
      'line ends that the model wrote itself',
      Buffer.from('one\ntwo\n'),
      'one\n',
      'one\r\n',
      Buffer.from('one\r\ntwo\n'),
    ],
    ['a missing end of the last line', Buffer.from('one\ntwo'), 'two', '2', Buffer.from('one\n2')],
    ['a byte order mark', Buffer.from('\uFEFFone'), 'one', 'ü', Buffer.from('\uFEFFü')],
    ['UTF-16, small end first', utf16('one\r\nü'), 'one\nü', '😀', utf16('😀')],
    ['UTF-16, big end first', utf16('one\r\nü').swap16(), 'one', '1\n2', utf16('1\r\n2\r\nü').swap16()],
    ['what is no UTF-8', latin('caf\xe9 \x93quoted\x94\n'), 'café', 'thé', latin('th\xe9 \x93quoted\x94\n')],
    ['a carriage return within a line', Buffer.from('10%\r20%\none\n'), 'one', 'two', Buffer.from('10%\r20%\ntwo\n')],
  ])('%s', async (_, before, old_str, new_str, after) => {
    const { write, call, bytes } = await openEditor()
    await write('a', before)
    expect((await call({ command: 'str_replace', path: 'a', old_str, new_str })).error).toBeUndefined()
    expect((await bytes('a')).toString('hex')).toBe(after.toString('hex'))
  })

  test('an edit that its encoding cannot express is refused', async () => {
    const { write, fault, bytes } = await openEditor()
    await write('a', latin('caf\xe9\n'))
    expect(await fault({ command: 'str_replace', path: 'a', old_str: 'café', new_str: '€' })).toMatch(
      /taken as latin-1, in which the new text cannot be written/,
    )
    expect(await bytes('a')).toEqual(latin('caf\xe9\n'))
  })
})

describe('is refused, saying what to do instead:', () => {
  test.each([
    [
      'a file that does not exist',
      'none',
      /The path .*none does not exist/,
      ['view', 'str_replace', 'insert', 'undo_edit'],
    ],
    [
      'a directory',
      'dir',
      /is a directory and only the `view` command/,
      ['create', 'str_replace', 'insert', 'undo_edit'],
    ],
    ['a binary file', 'binary', /is a binary file.*Use Bash/, ['view', 'str_replace', 'insert']],
    ['an image', 'image', /is a binary file/, ['str_replace', 'insert']],
    [
      'a file that is too large',
      'large',
      /is too large \(10 MiB; the limit is 10 MiB\)\. Use Bash/,
      ['view', 'str_replace', 'insert', 'undo_edit'],
    ],
    [
      'a named pipe',
      'pipe',
      /is a named pipe and not a file; use Bash/,
      ['view', 'str_replace', 'insert', 'undo_edit'],
    ],
    ['a name with a NUL', 'a\0b', /NUL/, ['view', 'create']],
    [
      'a file of the server',
      '../server/edits/x',
      /belongs to the server/,
      ['view', 'create', 'str_replace', 'insert', 'undo_edit'],
    ],
  ])('%s', async (_, path, why, commands) => {
    const { write, fault, workdir } = await openEditor()
    await mkdir(join(workdir, 'dir'))
    await write('binary', Buffer.from([1, 0, 2]))
    await write('image', PNG)
    await write('large', Buffer.alloc(MAX_FILE_BYTES + 1, 'x'))
    await promisify(execFile)('mkfifo', [join(workdir, 'pipe')])
    for (const command of commands) {
      expect(
        await fault({ command, path, file_text: 'x', old_str: 'x', new_str: 'y', insert_line: 0 }),
        command,
      ).toMatch(why)
    }
  })

  test('an image that is too large to be shown', async () => {
    const { write, fault } = await openEditor()
    await write('a.png', Buffer.concat([PNG, Buffer.alloc(MAX_IMAGE_BYTES)]))
    expect(await fault({ command: 'view', path: 'a.png' })).toMatch(/too large to be shown .*Make a smaller copy/)
  })

  test('an edit that would make a file too large', async () => {
    const { write, fault } = await openEditor()
    await write('a', Buffer.alloc(MAX_FILE_BYTES, 'x'))
    expect(await fault({ command: 'insert', path: 'a', insert_line: 0, new_str: 'y' })).toMatch(
      /would be larger than the 10 MiB/,
    )
  })

  test('lines of a directory', async () => {
    const { fault, workdir } = await openEditor()
    expect(await fault({ command: 'view', path: workdir, view_range: [1, 2] })).toMatch(/`view_range` is not allowed/)
  })

  test('a file without `file_text`', async () => {
    const { fault } = await openEditor()
    expect(await fault({ command: 'create', path: 'a' })).toBe('Parameter `file_text` is required for command: create.')
  })
})

test('errors are reported by type: the call, the file system, or a rule', async () => {
  const { call, write } = await openEditor()
  await write('file', '')
  expect((await call({ command: 'view', path: 'none' })).error?.type).toBe('invalid_input')
  expect((await call({ command: 'view', path: 'file/x' })).error?.type).toBe('failed')
  expect((await call({ command: 'view', path: '/proc/self/environ' })).error?.type).toBe('denied')
})

test('calls come one after the other, so that edits of one turn do not undo each other', async () => {
  const { call, read, write } = await openEditor()
  await write('a', numbers(20))
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      call({ command: 'str_replace', path: 'a', old_str: `line ${i + 1}\n`, new_str: `${i + 1}\n` }),
    ),
  )
  expect(await read('a')).toBe(numbers(20).replaceAll('line ', ''))
})
