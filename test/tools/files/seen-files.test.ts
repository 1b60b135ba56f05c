import { appendFile, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SeenFiles } from '../../../src/tools/files/seen-files.ts'
import { makeDirectory } from '../../files/editor-fixture.ts'

const content = (text: string) => Buffer.from(text)

test('what was noted survives a restart, and the latest note counts', async () => {
  const path = join(await makeDirectory(), 'read-files')
  const seen = new SeenFiles(path)
  await Promise.all([seen.note('/a', content('1')), seen.note('/b', content('1'))])
  await seen.note('/a', content('2'))
  const again = new SeenFiles(path)
  expect(await again.state('/a', content('2'))).toBe('current')
  expect(await again.state('/a', content('1'))).toBe('changed')
  expect(await again.state('/c', content('1'))).toBe('never')
})

test('the file holds neither paths nor content, and only its owner may read it', async () => {
  const path = join(await makeDirectory(), 'read-files')
  await new SeenFiles(path).note('/secret-path', content('secret-content'))
  expect(await readFile(path, 'utf8')).toMatch(/^[0-9a-f]{32} [0-9a-f]{32}\n$/)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('a note that a crash has cut off is forgotten, and does not spoil the next', async () => {
  const path = join(await makeDirectory(), 'read-files')
  await new SeenFiles(path).note('/a', content('1'))
  await appendFile(path, 'b00')
  await new SeenFiles(path).note('/b', content('1'))
  const again = new SeenFiles(path)
  expect(await again.state('/a', content('1'))).toBe('current')
  expect(await again.state('/b', content('1'))).toBe('current')
})

test('the file stays small, and the oldest notes are forgotten first', async () => {
  const path = join(await makeDirectory(), 'read-files')
  const lines = Array.from({ length: 9000 }, (_, at) => `${String(at).padStart(32, '0')} ${'0'.repeat(32)}\n`)
  await writeFile(path, lines.join(''))
  await new SeenFiles(path).note('/a', content('1'))
  const kept = (await readFile(path, 'utf8')).trim().split('\n')
  expect(kept).toHaveLength(2001)
  expect(kept[0]).toBe(lines[7000]!.trim())
})

test('where nothing can be stored, it still holds until the end', async () => {
  const seen = new SeenFiles('/nonexistent/read-files')
  await seen.note('/a', content('1'))
  expect(await seen.state('/a', content('1'))).toBe('current')
})
