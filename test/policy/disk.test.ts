/** What one decision looks up on the disk: each thing once, however many rules and commands ask for it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as parser from 'unbash'
import { expect, onTestFinished, test } from 'vitest'
import { decide } from '../../src/policy/decide.ts'
import type { Disk } from '../../src/policy/disk.ts'
import { createDisk } from '../../src/policy/disk.ts'
import { Places } from '../../src/policy/places.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'

async function repository(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'policy-disk-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await mkdir(join(directory, '.git'))
  const header = Buffer.from('DIRC\0\0\0\u0002', 'latin1')
  await writeFile(join(directory, '.git/index'), Buffer.concat([header, Buffer.from('a.pem\0b.txt\0')]))
  await writeFile(join(directory, 'a.pem'), '')
  await writeFile(join(directory, '.ignore'), '!.env\n')
  return directory
}

test('a decision keeps what it has found on the disk, and the next one looks again', async () => {
  const directory = await repository()
  const listed: string[] = []
  const seenBy = (disk: Disk) => {
    disk.holds(directory, (path) => (listed.push(path), false), new Set(['.git']))
    return {
      exists: disk.exists(join(directory, 'a.pem')),
      tracks: disk.tracks(directory, ['a.pem\0']),
      tracksOther: disk.tracks(directory, ['c.pem\0']),
      included: disk.included(directory, []),
      listed: listed.splice(0).length,
    }
  }
  const [disk, later] = [createDisk(), createDisk()]
  const first = seenBy(disk)
  expect(first).toMatchObject({ exists: true, tracks: true, tracksOther: false, included: ['.env'] })
  await rm(directory, { recursive: true })
  expect(seenBy(disk)).toEqual(first)
  expect(disk.tracks(directory, ['b.txt\0']), 'the index is read once for all rules').toBe(true)
  // Outside of a repository, `git diff` compares any files.
  expect(seenBy(later)).toEqual({ exists: false, tracks: true, tracksOther: true, included: [], listed: 0 })
})

test('the look-ups of one decision do not grow with the number of rules and of equal commands', () => {
  const lookUps = (commands: number, rules: number) => {
    const asked: string[] = []
    const none = (path: string) => (asked.push(path), false)
    const disk = {
      exists: none,
      holds: () => false,
      targetOf: () => undefined,
      holdsOptions: () => false,
      tracks: () => false,
      topOf: () => undefined,
      included: () => [],
    }
    const directories = { realPath: (path: string) => path, isDirectory: none, holdsLinks: () => false }
    const places = new Places({
      workdir: '/work',
      homes: ['/home/user'],
      programOfGit: () => undefined,
      disk,
      ...directories,
    })
    const line = readCommandLine('rg x src; cat .e*;'.repeat(commands), {
      parser,
      cwd: '/work',
      homes: ['/home/user'],
    })
    const deny = ['Read(./.env)', ...Array.from({ length: rules }, (_, at) => `Read(./src/**/secret-${at}*.pem)`)]
    const given = { mode: 'bypass' as const, confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny }) }
    decide({ tool: 'Bash', action: { kind: 'command', line }, places }, given, { approved: false })
    return asked
  }
  const few = lookUps(1, 1)
  expect(few.toSorted()).toEqual(['/work/.env', '/work/src'])
  expect(lookUps(30, 1)).toEqual(few)
  expect(lookUps(1, 30)).toEqual(few)
})
