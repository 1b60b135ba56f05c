/** What a command grants of the home, and for how long. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HomeGrants, homeAccessIn } from '../../src/access/home-access.ts'

const ACCESS = { home: '/home/ada', readable: [{ at: '/home/ada/.npmrc', real: '/home/ada/.npmrc' }] }

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'home-access-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const granted = () => readdir(join(dataDir, 'home-access'))

test('holds for the conversations that were opened, until the command ends', async () => {
  const accessOf = homeAccessIn(dataDir)
  {
    await using grants = new HomeGrants(dataDir, ACCESS)
    await grants.open('one')
    expect([accessOf('one'), accessOf('other')]).toEqual([expect.objectContaining(ACCESS), undefined])
  }
  expect([accessOf('one'), await granted()]).toEqual([undefined, []])
})

test('is taken away by a command that opens the conversation without it', async () => {
  await using grants = new HomeGrants(dataDir, ACCESS)
  await grants.open('one')
  await new HomeGrants(dataDir, undefined).open('one')
  expect(homeAccessIn(dataDir)('one')).toBeUndefined()
})

test('is that of the command that opened the conversation last, also when the one before ends', async () => {
  await mkdir(join(dataDir, 'home-access'))
  const before = new HomeGrants(dataDir, ACCESS)
  await before.open('one')
  const path = join(dataDir, 'home-access/one.json')
  const ofAnother = { ...(JSON.parse(await readFile(path, 'utf8')) as object), pid: process.ppid }
  await writeFile(path, JSON.stringify(ofAnother))
  await before[Symbol.asyncDispose]()
  expect(await granted()).toEqual(['one.json'])
})

test('of a command that was killed does not count, also if another process has its number, and is removed by the next', async () => {
  await new HomeGrants(dataDir, ACCESS).open('one')
  const path = join(dataDir, 'home-access/one.json')
  const grant = JSON.parse(await readFile(path, 'utf8')) as object
  const { pid } = spawnSync('true')
  for (const left of [{ pid }, { start: '1' }]) {
    await writeFile(path, JSON.stringify({ ...grant, ...left }))
    expect(homeAccessIn(dataDir)('one')).toBeUndefined()
    await new HomeGrants(dataDir, ACCESS).open('other')
    expect(await granted()).toEqual(['other.json'])
  }
})

test('of a command that was killed does not count while its parent has not noticed', async () => {
  await new HomeGrants(dataDir, ACCESS).open('one')
  const path = join(dataDir, 'home-access/one.json')
  const grant = JSON.parse(await readFile(path, 'utf8')) as object
  // The shell becomes a program that never waits for the child that the shell has left to it.
  const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = Number(line.toString())
    const startOf = async () => (await readFile(`/proc/${pid}/stat`, 'latin1')).split(') ')[1]?.split(' ')
    await expect.poll(() => readFile(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n')
    await writeFile(path, JSON.stringify({ ...grant, pid, start: (await startOf())?.[19] }))
    expect(homeAccessIn(dataDir)('one')).toBeDefined()
    process.kill(pid, 'SIGKILL')
    await expect.poll(async () => (await startOf())?.[0]).toBe('Z')
    expect(homeAccessIn(dataDir)('one')).toBeUndefined()
  } finally {
    parent.kill('SIGKILL')
  }
})

test('costs nothing where nobody grants anything', async () => {
  {
    await using grants = new HomeGrants(dataDir, undefined)
    await grants.open('one')
  }
  expect(await readdir(dataDir)).toEqual([])
})
