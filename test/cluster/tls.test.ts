/** Two instances that use TLS, over real connections: what is encrypted, and which certificates are refused. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { loneInstance } from '../support/instances.ts'
import { expect, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { Cluster } from '../../src/cluster/cluster.ts'
import type { TlsMaterial } from '../../src/cluster/tls.ts'
import { readTls } from '../../src/cluster/tls.ts'
import { until } from '../support/until.ts'
import { EXPIRED, INSTANCE, STRANGER } from '../support/certificates.ts'

function instanceOf(own: number, tls: TlsMaterial | undefined) {
  const faults: unknown[] = []
  const note = (error: unknown) => faults.push(error)
  const instances = loneInstance(own)
  return { faults, cluster: new Cluster({ instances, keyMaterial: 'a data key', tls, onRefused: note, onFault: note }) }
}

/** Listens and answers each request with its body. */
async function listening(tls: TlsMaterial | undefined, stack: AsyncDisposableStack) {
  const { cluster, faults } = instanceOf(7, tls)
  stack.use(cluster)
  const http = createHttpServer((request, response) => void request.pipe(response))
  const address = await cluster.listen(http, { host: '127.0.0.1', port: 0, advertiseUrl: undefined, settings: {} })
  return { faults, address, port: Number(new URL(address).port) }
}

async function asks(tls: TlsMaterial | undefined, address: string, stack: AsyncDisposableStack): Promise<string> {
  const { cluster } = instanceOf(8, tls)
  stack.use(cluster)
  const { Readable } = await import('node:stream')
  const body = Readable.from(['what nobody may read'])
  const request = { method: 'POST', path: '/', headers: {}, body, signal: new AbortController().signal }
  const rights = { fingerprint: 'key', access: Access.master() }
  return await text((await cluster.send({ instance: 7, address }, request, rights)).body)
}

async function listenOn(server: Server, stack: AsyncDisposableStack): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('instances with certificates of one authority exchange requests, and what is on the network shows nothing of them', async () => {
  await using stack = new AsyncDisposableStack()
  const { port } = await listening(INSTANCE, stack)
  let seen = ''
  const recorder = createServer((socket) => {
    const onward = connect(port, '127.0.0.1')
    for (const each of [socket, onward]) each.on('data', (chunk) => (seen += chunk.toString('latin1')))
    socket.pipe(onward).pipe(socket)
  })
  const between = await listenOn(recorder, stack)
  expect(await asks(INSTANCE, `https://127.0.0.1:${between}`, stack)).toBe('what nobody may read')
  expect(seen.length).toBeGreaterThan(100)
  expect(seen).not.toContain('what nobody')
})

test.each([
  ['of another authority', STRANGER, 'with TLS'],
  ['that has expired', EXPIRED, 'expired'],
  ['that is missing', undefined, 'do not both use TLS'],
])('a certificate %s is refused: the request is not executed, and both ends say why', async (_, tls, reason) => {
  await using stack = new AsyncDisposableStack()
  const { address, faults } = await listening(INSTANCE, stack)
  const refused = asks(tls, address, stack)
  await expect(refused).rejects.toMatchObject({ code: 'owner_lost', status: 503 })
  await expect(refused).rejects.toThrow(reason)
  await expect(refused).rejects.toThrow('The request was not executed. Correct the certificates')
  if (tls) await until('a report of the asked instance', async () => faults.length > 0)
})

test('a proxy that has a certificate of the authority is refused', async () => {
  await using stack = new AsyncDisposableStack()
  const { port, faults } = await listening(INSTANCE, stack)
  const options = { ...INSTANCE, requestCert: true }
  const relay = createTlsServer(options, (socket) => {
    const onward = connectTls({ ...INSTANCE, host: '127.0.0.1', port, checkServerIdentity: () => undefined })
    for (const each of [socket, onward]) each.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  const between = await listenOn(relay, stack)
  await expect(asks(INSTANCE, `https://127.0.0.1:${between}`, stack)).rejects.toMatchObject({ code: 'owner_lost' })
  expect(String(faults)).not.toContain('what nobody')
})

test('the server does not start with certificate files that cannot work, and says which setting to correct', async () => {
  const place = await mkdtemp(join(tmpdir(), 'tls-'))
  const write = async (name: string, content: string) => {
    await writeFile(join(place, name), content)
    return join(place, name)
  }
  const files = {
    cert: await write('cert', INSTANCE.cert),
    key: await write('key', INSTANCE.key),
    ca: await write('ca', INSTANCE.ca),
  }
  expect(await readTls(files)).toEqual(INSTANCE)
  const cases = [
    [{ cert: join(place, 'none') }, 'OPENHANDS_CLUSTER_TLS_CERT: .* cannot be read. Give the path of a PEM file'],
    [{ cert: files.key }, 'OPENHANDS_CLUSTER_TLS_CERT: the file contains no certificate'],
    [{ key: files.cert }, 'OPENHANDS_CLUSTER_TLS_KEY: the file contains no private key'],
    [{ ca: files.key }, 'OPENHANDS_CLUSTER_TLS_CA: the file contains no certificate'],
    [{ key: await write('other', STRANGER.key) }, 'OPENHANDS_CLUSTER_TLS_KEY is not the key of the certificate'],
    [{ cert: await write('old', EXPIRED.cert), key: await write('its', EXPIRED.key) }, 'expired on .* Renew it'],
  ] as const
  for (const [changes, reason] of cases)
    await expect(readTls({ ...files, ...changes })).rejects.toThrow(new RegExp(reason))
  await rm(place, { recursive: true })
})

test('an instance whose own certificate its authority has not signed does not start to listen', async () => {
  await using stack = new AsyncDisposableStack()
  await expect(listening({ ...STRANGER, ca: INSTANCE.ca }, stack)).rejects.toThrow('unable to verify')
})
