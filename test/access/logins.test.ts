/** Logins in a real database: their time, restarts, and what is stored. */
import { readFile, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { ApiKeys } from '../../src/access/api-keys.ts'
import type { LoginsOptions } from '../../src/access/logins.ts'
import { Logins } from '../../src/access/logins.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { FileStorage } from '../../src/storage/files/file-storage.ts'

const MASTER = 'the-master-key-of-these-tests'
const HOUR = 3_600_000
const MASTER_LOGIN = {
  origin: { kind: 'master' as const, hash: `hash of ${MASTER}` },
  access: Access.master(),
  scopes: undefined,
  userAgent: 'a browser',
}

async function bench() {
  const directory = await mkdtempDisposable(join(tmpdir(), 'logins-'))
  let now = Date.parse('2026-01-31T12:00:00.000Z')
  const clock = () => now
  const opened: AsyncDisposable[] = []
  let shared: Omit<LoginsOptions, 'isShared'>
  const here = {
    /** Instead of the look-up of an API key. */
    lookUp: undefined as (() => Promise<Access>) | undefined,
    /** Another instance over the same database. */
    openBeside: () => Logins.open({ ...shared, isShared: true }),
    path: join(directory.path, 'tables.db'),
    pass: (ms: number) => (now += ms),
    /** As a server does, after an earlier one has stopped. */
    async open(masterKeys = [MASTER]): Promise<Logins> {
      for (const each of opened.splice(0)) await each[Symbol.asyncDispose]()
      const storage = await FileStorage.openUnlocked({
        directory: directory.path,
        keys: { material: ['a key'], locked: 0 },
        onFault: () => {},
      })
      const apiKeys = await ApiKeys.open(storage.apiKeys, clock)
      shared = {
        table: storage.logins,
        apiKeys: {
          findHashed: (hash) => here.lookUp?.() ?? apiKeys.findHashed(hash),
          isValid: (hash) => here.lookUp !== undefined || apiKeys.isValid(hash),
        },
        masterHashes: masterKeys.map((key) => `hash of ${key}`),
        hashMaster: (key) => `hash of ${key}`,
        now: clock,
      }
      const logins = await Logins.open({ ...shared, isShared: false })
      opened.push(logins, apiKeys, storage)
      return logins
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const each of opened) await each[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
  return here
}

test('a login survives a restart, and the file has neither half of it', async () => {
  await using here = await bench()
  const { value, cookie, login } = await (await here.open()).create(MASTER_LOGIN)
  const logins = await here.open()
  expect((await logins.find(value, [cookie]))?.loginId).toBe(login.id)
  const file = await readFile(here.path, 'latin1')
  expect([file.includes(value), file.includes(cookie), file.includes(login.id)]).toEqual([false, false, true])
})

test('a login that ends while its key is looked up gives no permissions', async () => {
  await using here = await bench()
  const logins = await here.open()
  const access = new Access({ id: uuid7(), name: 'a key' }, ['read'], {}, new AbortController().signal)
  const origin = { kind: 'api_key' as const, id: access.key!.id, name: 'a key', hash: 'hash of a key' }
  let ending = Promise.resolve()
  here.lookUp = async () => {
    await ending
    return access
  }
  const { value, cookie, login } = await logins.create({ ...MASTER_LOGIN, origin, access })
  expect(await logins.find(value, [cookie])).toBeDefined()
  ending = logins.end(Access.master(), login.id)
  expect(await logins.find(value, [cookie])).toBeUndefined()
})

test('a login ends after 12 hours without use, also across a restart, and otherwise after 30 days', async () => {
  await using here = await bench()
  let logins = await here.open()
  const { value, cookie } = await logins.create(MASTER_LOGIN)
  for (let hours = 0; hours < 30 * 24 - 11; hours += 11) {
    expect(await logins.find(value, [cookie]), `after ${hours} hours`).toBeDefined()
    here.pass(11 * HOUR)
    if (hours % 110 === 0) logins = await here.open()
  }
  here.pass(11 * HOUR)
  expect(await logins.find(value, [cookie])).toBeUndefined()
  const idle = await logins.create(MASTER_LOGIN)
  here.pass(12 * HOUR - 1)
  expect(await logins.list(Access.master())).toHaveLength(1)
  here.pass(1)
  expect(await logins.find(idle.value, [idle.cookie])).toBeUndefined()
  expect(await logins.list(Access.master())).toEqual([])
})

test('the streams of a login that is over end within a minute, and its row is removed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    await using here = await bench()
    const logins = await here.open()
    const { value, cookie } = await logins.create(MASTER_LOGIN)
    const access = await logins.find(value, [cookie])
    here.pass(12 * HOUR)
    expect(access?.ended.aborted).toBe(false)
    vi.advanceTimersByTime(60_000)
    expect(access?.ended.aborted).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})

test('a login that another instance has just made can be ended by its id', async () => {
  await using here = await bench()
  const logins = await here.open()
  await using beside = await here.openBeside()
  const { login, value, cookie } = await logins.create(MASTER_LOGIN)
  await beside.end(Access.master(), login.id)
  await expect(logins.end(Access.master(), login.id)).rejects.toMatchObject({ code: 'login_not_found' })
  expect(await logins.find(value, [cookie])).toBeUndefined()
})

test('a login that is used at one instance does not end at another one that never saw it', async () => {
  await using here = await bench()
  const used = await here.open()
  const { value, cookie, login } = await used.create(MASTER_LOGIN)
  await using idle = await here.openBeside()
  for (let passed = 0; passed < 14; passed += 7) {
    here.pass(7 * HOUR)
    expect((await used.find(value, [cookie]))?.loginId).toBe(login.id)
  }
  // It notes the uses.
  await used[Symbol.asyncDispose]()
  expect((await idle.find(value, [cookie]))?.loginId).toBe(login.id)
})

test('a login of a master key ends when the server no longer has that key', async () => {
  await using here = await bench()
  const { value, cookie } = await (await here.open()).create(MASTER_LOGIN)
  expect(await (await here.open(['new', MASTER])).find(value, [cookie])).toBeDefined()
  expect(await (await here.open(['new'])).find(value, [cookie])).toBeUndefined()
})

test('the 101st login of a key ends the one that was unused for longest', async () => {
  await using here = await bench()
  const logins = await here.open()
  const first = await logins.create(MASTER_LOGIN)
  here.pass(1000)
  const second = await logins.create(MASTER_LOGIN)
  here.pass(60_000)
  await logins.find(first.value, [first.cookie])
  for (let number = 3; number <= 101; number++) await logins.create(MASTER_LOGIN)
  expect(await logins.find(first.value, [first.cookie])).toBeDefined()
  expect(await logins.find(second.value, [second.cookie])).toBeUndefined()
})

test('a one-time code is valid for a minute', async () => {
  await using here = await bench()
  const { codes } = await here.open()
  const [early, late] = [
    await codes.issue(MASTER_LOGIN.origin, Access.master()),
    await codes.issue(MASTER_LOGIN.origin, Access.master()),
  ]
  here.pass(59_999)
  expect(await codes.redeem(early.code)).toBeDefined()
  here.pass(1)
  expect(await codes.redeem(late.code)).toBeUndefined()
})
