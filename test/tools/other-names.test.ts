import { expect, test } from 'vitest'
import { createFileRead, createFileWrite } from '../../src/tools/other-names.ts'
import { openFiles } from './editor/editor-fixture.ts'

test('file_read shows the lines of view_range', async () => {
  const { write, say, fault } = await openFiles(createFileRead)
  await write('a', 'one\ntwo\nthree\n')
  expect(await say({ path: 'a' })).toBe('     1\tone\n     2\ttwo\n     3\tthree')
  expect(await say({ path: 'a', view_range: [2, 2] })).toMatch(/^ {5}2\ttwo\n/)
  expect(await say({ path: 'a', view_range: [2, -1] })).toBe('     2\ttwo\n     3\tthree')
  expect(await fault({ path: 'a', view_range: [3, 2] })).toMatch(/Invalid `view_range`/)
  expect(await fault({ path: 'missing' })).toMatch(/does not exist/)
})

test('file_write creates a file, and replaces only one that was read', async () => {
  const { write, say, fault, read, callWith } = await openFiles(createFileWrite)
  await say({ path: 'new', content: 'x' })
  expect(await read('new')).toBe('x')
  await write('a', 'old')
  expect(await fault({ path: 'a', content: 'new' })).toMatch(/has not been read/)
  await callWith(createFileRead, { path: 'a' })
  await say({ path: 'a', content: 'new' })
  expect(await read('a')).toBe('new')
})
