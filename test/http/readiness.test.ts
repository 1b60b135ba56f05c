import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createReadiness } from '../../src/http/readiness.ts'

const storageAnswers = () => true
const running = (dataDir: string) => createReadiness({ dataDir, storageAnswers, phase: () => 'running' })

test('is ready while it runs and its directory can be written, and leaves nothing there', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'ready-'))
  expect(await running(dataDir)()).toEqual({ status: 'ok' })
  expect(await readdir(dataDir)).toEqual([])
  await rm(dataDir, { recursive: true })
  expect(await running(dataDir)()).toEqual({
    status: 'unavailable',
    reason: 'storage',
  })
})

test.each(['starting', 'stopping'] as const)('is not while it is %s, and says so', async (reason) => {
  const probe = createReadiness({ dataDir: tmpdir(), storageAnswers, phase: () => reason })
  expect(await probe()).toEqual({ status: 'unavailable', reason })
})

test('checks the disk once for all concurrent requests', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'ready-'))
  const probe = running(dataDir)
  await probe()
  await rename(dataDir, `${dataDir}-moved`)
  expect(await probe(), 'still what it was a moment ago').toEqual({ status: 'ok' })
  await rm(`${dataDir}-moved`, { recursive: true })
})

test('is not when another directory has the same name', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'ready-'))
  await writeFile(join(dataDir, 'lock.db'), '')
  const probe = running(dataDir)
  expect(await probe()).toEqual({ status: 'ok' })
  await rename(dataDir, `${dataDir}-moved`)
  await cp(`${dataDir}-moved`, dataDir, { recursive: true })
  await expect.poll(probe).toEqual({ status: 'unavailable', reason: 'storage' })
  for (const path of [dataDir, `${dataDir}-moved`]) await rm(path, { recursive: true })
})

test('checks a disk that hangs only once until it answers, and says so meanwhile', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'ready-'))
  // Opening a pipe that nobody reads hangs, as a disk may.
  await promisify(execFile)('mkfifo', [join(dataDir, '.ready')])
  const probe = running(dataDir)
  const hanging = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('FSReq')).length
  for (let asked = 0; asked < 2; asked++) {
    expect(await probe()).toEqual({ status: 'unavailable', reason: 'storage' })
    expect(hanging()).toBe(1)
  }
  await readFile(join(dataDir, '.ready'))
  await expect.poll(probe).toEqual({ status: 'ok' })
  await rm(dataDir, { recursive: true })
})
