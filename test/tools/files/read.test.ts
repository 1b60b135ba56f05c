import { execFileSync } from 'node:child_process'
import { mkdir, symlink, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createRead, MAX_READ_BYTES, MAX_READ_LINE_CHARS, MAX_READ_LINES } from '../../../src/tools/files/read.ts'
import { runAsNobody } from '../../support/unprivileged.ts'
import { openFiles } from '../editor/editor-fixture.ts'

const openRead = () => openFiles(createRead)
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('Read shows', () => {
  test('text with line numbers as cat -n does, from a path absolute or relative', async () => {
    const { write, say, at } = await openRead()
    await write('a', 'one\n\n\tthree')
    expect(await say({ file_path: at('a') })).toBe('     1\tone\n     2\t\n     3\t\tthree')
    expect(await say({ file_path: 'a' })).toBe('     1\tone\n     2\t\n     3\t\tthree')
  })

  test('the lines that are asked for, and says where to continue', async () => {
    const { write, say, call } = await openRead()
    await write('a', 'one\ntwo\nthree\nfour\n')
    expect(await say({ file_path: 'a', offset: 2, limit: 2 })).toBe(
      '     2\ttwo\n     3\tthree\n[Lines 4 to 4 are not shown. Continue with offset 4.]',
    )
    expect(await say({ file_path: 'a', offset: 4 })).toBe('     4\tfour')
    expect(await say({ file_path: 'a', offset: 0, limit: 1 })).toContain('     1\tone\n')
    expect(await call({ file_path: 'a', offset: 2, limit: 2 })).not.toHaveProperty('truncated')
  })

  test('a long file up to the limit of lines', async () => {
    const { write, call } = await openRead()
    await write('a', 'x\n'.repeat(MAX_READ_LINES + 5))
    const { output, truncated } = await call({ file_path: 'a', limit: 1_000_000 })
    expect(String(output).split('\n')).toHaveLength(MAX_READ_LINES + 1)
    expect(output).toContain(`[Lines ${MAX_READ_LINES + 1} to ${MAX_READ_LINES + 5} are not shown.`)
    expect(truncated).toBe(true)
  })

  test('a part of a long line, and no secret that the cut hides from the redactor', async () => {
    const { write, call } = await openRead()
    await write('a', `${'x'.repeat(MAX_READ_LINE_CHARS - 8)}hunter2-hunter2\nnext`)
    const { output, truncated } = await call({ file_path: 'a' })
    expect(output).not.toContain('hunter2')
    expect(output).toMatch(/\[… \d+ more characters in this line\]\n {5}2\tnext$/)
    expect(truncated).toBe(true)
  })

  test('no more bytes than its limit, counted as UTF-8', async () => {
    const { write, call } = await openRead()
    await write('a', `${'€'.repeat(1000)}\n`.repeat(200))
    const { output, truncated } = await call({ file_path: 'a' })
    expect(Buffer.byteLength(String(output))).toBeLessThan(MAX_READ_BYTES + 200)
    expect(output).toMatch(/Continue with offset \d+\.\]$/)
    expect(truncated).toBe(true)
  })

  test.each([
    ['carriage returns', Buffer.from('a\r\nb\r\n'), '     1\ta\n     2\tb'],
    ['UTF-16', Buffer.from('\ufeffa\nü', 'utf16le'), '     1\ta\n     2\tü'],
    [
      'what is not UTF-8',
      Buffer.from([0x61, 0xe4, 0x0a]),
      '     1\taä\n[The file is not UTF-8; its bytes are shown as Latin-1.]',
    ],
    ['nothing', Buffer.alloc(0), /^The file \S+ is empty\.$/],
  ])('%s', async (_, bytes, shown) => {
    const { write, say } = await openRead()
    await write('a', bytes)
    expect(await say({ file_path: 'a' })).toEqual(typeof shown === 'string' ? shown : expect.stringMatching(shown))
  })

  test('an image as an image, under any name', async () => {
    const { write, call } = await openRead()
    await write('picture.txt', PNG)
    expect((await call({ file_path: 'picture.txt' })).output).toEqual([
      { type: 'text', text: expect.stringContaining('image/png') },
      { type: 'image', media_type: 'image/png', data: PNG.toString('base64') },
    ])
  })

  test('a notebook as its cells and their outputs', async () => {
    const { write, say } = await openRead()
    const cells = [
      { cell_type: 'markdown', id: 'm1', source: ['# Totals\n', 'of sales'] },
      {
        cell_type: 'code',
        source: 'print(1)\n2',
        outputs: [
          { output_type: 'stream', name: 'stdout', text: ['1\n'] },
          { output_type: 'execute_result', data: { 'text/plain': ['2'], 'image/png': 'AAAA' } },
          { output_type: 'error', ename: 'ValueError', evalue: 'bad', traceback: [] },
        ],
      },
    ]
    await write('n.ipynb', JSON.stringify({ nbformat: 4, cells }))
    const text = (await say({ file_path: 'n.ipynb' })).replace(/^ +\d+\t/gm, '')
    expect(text).toBe(
      [
        '[cell 1: markdown, id m1]\n# Totals\nof sales',
        '[cell 2: code]\nprint(1)\n2\n[output]\n1\n\n[output, also as image/png]\n2\n[error]\nValueError: bad',
      ].join('\n\n') + '\n[This is a notebook, shown as text. In the file itself it is JSON.]',
    )
  })

  test('an invalid notebook as plain text', async () => {
    const { write, say } = await openRead()
    await write('n.ipynb', '{"cells": [')
    expect(await say({ file_path: 'n.ipynb' })).toBe('     1\t{"cells": [')
  })

  test('what a link leads to', async () => {
    const { write, say, at } = await openRead()
    await write('a', 'one')
    await symlink('a', at('link'))
    expect(await say({ file_path: 'link' })).toBe('     1\tone')
  })
})

describe('Read refuses, and says what to do,', () => {
  test.each([
    ['a file that is missing', 'missing', {}, /does not exist/],
    ['a directory', 'directory', {}, /is a directory. Use Bash/],
    ['a pipe, without waiting for a writer', 'pipe', {}, /is a named pipe and not a file/],
    ['a binary file', 'binary', {}, /is a binary file/],
    ['a file that is too large', 'large', {}, /is too large \(11 MiB; the limit is 10 MiB\)/],
    ['lines behind the end', 'two', { offset: 3 }, /has 2 lines; `offset` 3 is behind its end/],
    ['a path that no file can have', 'a\0b', {}, /NUL character/],
  ])('%s', async (_, name, more, why) => {
    const { write, fault, at } = await openRead()
    await mkdir(at('directory'))
    execFileSync('mkfifo', [at('pipe')])
    await write('binary', Buffer.from([0, 1, 2, 3]))
    await write('large', '')
    await truncate(at('large'), 11 * 1024 * 1024)
    await write('two', '1\n2\n')
    expect(await fault({ file_path: name, ...more })).toMatch(why)
  })

  test('a file of the server, also through a link', async () => {
    const { call, at, server } = await openRead()
    await symlink(server, at('link'))
    for (const path of [join(server, 'events.jsonl'), at('link/events.jsonl'), '/proc/self/environ'])
      expect((await call({ file_path: path })).error).toMatchObject({ type: 'denied' })
  })

  test('a file that its user may not open', async () => {
    expect(await runAsNobody(join(import.meta.dirname, 'children/unprivileged-read.ts'))).toEqual({
      type: 'failed',
      message: expect.stringContaining('Permission denied'),
    })
  })
})
