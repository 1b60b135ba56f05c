/** Servers on one real database that use TLS between each other, as an operator sets it up. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Certificate } from '../support/certificates.ts'
import { EXPIRED, INSTANCE, STRANGER } from '../support/certificates.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let place: string

beforeAll(async () => {
  database = await createDatabase()
  place = await mkdtemp(join(tmpdir(), 'certificates-'))
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  await rm(place, { recursive: true })
})

async function envWith(name: string, certificate: Certificate): Promise<Record<string, string>> {
  const files = Object.entries(certificate).map(
    ([part, pem]) => [part, join(place, `${name}-${part}.pem`), pem] as const,
  )
  for (const [, path, pem] of files) await writeFile(path, pem)
  return {
    ...instanceOn(database),
    ...Object.fromEntries(files.map(([part, path]) => [`OPENHANDS_CLUSTER_TLS_${part.toUpperCase()}`, path])),
  }
}

test('instances forward requests with TLS, and one with a certificate of another authority gets 503 with the reason, also in the log', async () => {
  const env = await envWith('instance', INSTANCE)
  await using owner = await startServer({ env })
  await using asked = await startServer({ env })
  await using stranger = await startServer({ env: await envWith('stranger', STRANGER) })
  await expect.poll(owner.output).toContain('reach this one at https://127.0.0.1:')
  const { body } = await owner.call('POST', '/conversations', { llm_config: { model: 'any' } })
  expect(body.id).toBeDefined()
  const path = `/conversations/${body.id}`
  expect((await asked.call('GET', path)).body).toEqual((await owner.call('GET', path)).body)
  const refused = await stranger.call('GET', path)
  expect([refused.status, refused.body.error]).toEqual([503, 'owner_lost'])
  expect(refused.body.message).toMatch(/with TLS: self-signed certificate .* Correct the certificates/)
  await until('a report of the asking instance', async () =>
    stranger.output().includes('another instance could not be reached with TLS'),
  )
  await until('a report of the owner', async () =>
    owner.output().includes('a connection of another instance was refused'),
  )
})

test('a server with an expired certificate does not start, and says which one to renew', async () => {
  const refused = startServer({ env: await envWith('expired', EXPIRED), place })
  await expect(refused).rejects.toThrow('The certificate in OPENHANDS_CLUSTER_TLS_CERT expired on')
})
