/**
 * Servers that tests use one after the other: to start one takes longer than most of what they do with it. Each worker of
 * vitest has its own; the end of the test run ends them.
 */
import { mkdtempSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { inject } from 'vitest'
import { processesOf } from './left-processes.ts'
import { override } from './override.ts'
import type { TestServer } from './server.ts'
import { startServer } from './server.ts'
import { until } from './until.ts'
import { removeAll } from './remove-all.ts'

/** Servers that no test uses at the moment. They have no conversations, profiles or logins, and no key but the master key. */
const idle: SharedServer[] = []

type SharedServer = {
  readonly server: TestServer
  /** The directory for its temporary files and its data. No other process has it. */
  readonly place: string
}

/**
 * Returns a server with the default settings, without conversations. Disposing of it makes it available to the next test,
 * unless a test stopped it or changed its settings: then it ends. Throws there if a test left processes or files behind.
 */
export async function borrowServer(): Promise<TestServer> {
  const shared = idle.pop() ?? (await startShared())
  const { server, place } = shared
  let outputBefore = server.output().length
  let canBeUsedAgain = true
  return override(server, {
    output: () => server.output().slice(outputBefore),
    async stop(signal) {
      canBeUsedAgain = false
      return await server.stop(signal)
    },
    async restart(signal, settings) {
      outputBefore = 0
      await server.restart(signal, settings)
      canBeUsedAgain = settings === undefined
    },
    async [Symbol.asyncDispose]() {
      if (canBeUsedAgain && (await isEmptied(server).catch(() => false))) {
        await requireNothingLeft(shared)
        idle.push(shared)
        return
      }
      await server[Symbol.asyncDispose]()
      await until('the end of all processes of the server', async () => processesOf(place).length === 0)
      await removeAll(place)
    },
  })
}

async function startShared(): Promise<SharedServer> {
  const place = mkdtempSync(join(inject('temporary'), 's-'))
  return { server: await startServer({ place }), place }
}

/** Removes what tests have put beside the data. Throws if the server has left something else. */
async function requireNothingLeft({ server, place }: SharedServer): Promise<void> {
  const { home, dataDir, pid } = server
  for (const name of await readdir(home)) if (join(home, name) !== dataDir) await removeAll(join(home, name))
  const others = () => processesOf(place).filter((process) => process.pid !== pid)
  await until('the end of all processes of the conversations', async () => others().length === 0)
  const files = async () => (await readdir(place)).filter((name) => name !== basename(home))
  await until('the removal of all temporary files', async () => (await files()).length === 0).catch(async () => {
    throw new Error(`the server left temporary files: ${(await files()).join(', ')}`)
  })
}

/** Deletes all conversations, profiles, keys and logins. Returns false if something could not be deleted. */
async function isEmptied({ call }: TestServer): Promise<boolean> {
  const profiles: { name: string; created_at?: string }[] = (await call('GET', '/profiles')).body.items
  // The one that is there without the others was never created, and cannot be deleted.
  for (const { name, created_at } of profiles)
    if (created_at !== undefined && (await call('DELETE', `/profiles/${name}`)).status !== 204) return false
  for (const path of ['/conversations', '/keys', '/logins'])
    for (;;) {
      const { items } = (await call('GET', `${path}?limit=100`)).body
      if (items.length === 0) break
      const deleted = await Promise.all(items.map(({ id }: { id: string }) => call('DELETE', `${path}/${id}`)))
      if (deleted.some(({ status }) => status !== 204 && status !== 404)) return false
    }
  return true
}
