import { execFileSync } from 'node:child_process'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { archiveDirectory } from '../../../src/files/trees/archive-directory.ts'
import { parseJailPath } from '../../../src/files/jail/jail-path.ts'
import { outcomeOf, setJail } from '../jail-fixture.ts'

test('an archive contains every file unchanged, whatever its name', async () => {
  await using bench = await setJail()
  await mkdir(bench.inside('d', 'e'), { recursive: true })
  await writeFile(bench.inside('d', 'e', 'größe\n'), 'x'.repeat(1_000_000))
  await writeFile(Buffer.from([...Buffer.from(bench.inside('d', 'x')), 0xff]), 'y')
  await writeFile(bench.inside('d', 'run'), '#!/bin/sh', { mode: 0o755 })
  const input = await buffer(await archiveDirectory(await bench.open(), parseJailPath('d')))
  execFileSync('tar', ['xzf', '-', '-C', bench.outside], { input })
  execFileSync('diff', ['-r', bench.inside('d'), bench.outside, '--exclude=canary'])
  expect(
    execFileSync('stat', ['-c', '%a', `${bench.outside}/run`])
      .toString()
      .trim(),
  ).toBe('755')
})

test('a file that shrinks while it is archived keeps its size: missing bytes are zeros', async () => {
  await using bench = await setJail()
  const size = 40_000_000
  await writeFile(bench.inside('a'), '')
  await truncate(bench.inside('a'), size)
  await writeFile(bench.inside('b'), 'whole')
  const archive = await archiveDirectory(await bench.open(), parseJailPath(''))
  const chunks: Buffer[] = []
  for await (const chunk of archive) {
    if (chunks.length === 0) await truncate(bench.inside('a'), 10)
    chunks.push(chunk as Buffer)
  }
  const input = Buffer.concat(chunks)
  expect(execFileSync('tar', ['xzOf', '-', 'b'], { input }).toString()).toBe('whole')
  expect(execFileSync('tar', ['xzOf', '-', 'a'], { input, maxBuffer: 2 * size }).length).toBe(size)
})

test('an archive that is not read to its end leaves nothing open', async () => {
  await using bench = await setJail()
  await writeFile(bench.inside('a'), Buffer.alloc(5_000_000, 'abc'))
  const unread = await archiveDirectory(await bench.open(), parseJailPath(''))
  unread.destroy()
  const begun = await archiveDirectory(await bench.open(), parseJailPath(''))
  for await (const _ of begun) break
  expect(await outcomeOf(async () => archiveDirectory(await bench.open(), parseJailPath('none')))).toBe(
    'file_not_found',
  )
})
