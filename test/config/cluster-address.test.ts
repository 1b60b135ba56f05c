/** The settings of several instances: what is accepted, and what is refused with a reason. */
import { describe, expect, test } from 'vitest'
import { readCluster } from '../../src/config/cluster-address.ts'

const DATABASE = { OPENHANDS_DATABASE_URL: 'postgresql://user@127.0.0.1/name' }
const read = (settings: Readonly<Record<string, string>>) => readCluster((name) => settings[name] || undefined)

test('without a listener there is no cluster, and a loopback address needs no permission', () => {
  expect(read(DATABASE)).toBeUndefined()
  expect(read({ ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '[::1]:8100' })).toMatchObject({
    host: '::1',
    port: 8100,
    advertiseUrl: undefined,
    tls: undefined,
  })
})

test('an address that others can reach is accepted with the permission for plain connections only', () => {
  const settings = { ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '10.0.0.5:8100' }
  expect(() => read(settings)).toThrow('OPENHANDS_CLUSTER_PLAIN=1')
  expect(read({ ...settings, OPENHANDS_CLUSTER_PLAIN: '1' })?.port).toBe(8100)
})

const TLS = {
  OPENHANDS_CLUSTER_TLS_CERT: '/etc/tls/cert.pem',
  OPENHANDS_CLUSTER_TLS_KEY: '/etc/tls/key.pem',
  OPENHANDS_CLUSTER_TLS_CA: '/etc/tls/ca.pem',
}

test('with certificates, an address that others can reach needs no permission, and a URL begins with https', () => {
  const settings = { ...DATABASE, ...TLS, OPENHANDS_CLUSTER_LISTEN: '10.0.0.5:8100' }
  expect(read(settings)?.tls).toEqual({ cert: '/etc/tls/cert.pem', key: '/etc/tls/key.pem', ca: '/etc/tls/ca.pem' })
  expect(read({ ...settings, OPENHANDS_ADVERTISE_URL: 'https://a.example:1' })?.advertiseUrl).toBe(
    'https://a.example:1',
  )
  expect(() => read({ ...settings, OPENHANDS_ADVERTISE_URL: 'http://a.example:1' })).toThrow('https://host:port')
  expect(() => read({ ...settings, OPENHANDS_CLUSTER_TLS_CA: '' })).toThrow('belong together')
})

describe('the server does not start', () => {
  test.each([
    [{ OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:8100' }, 'needs OPENHANDS_DATABASE_URL'],
    [{ ...DATABASE, OPENHANDS_ADVERTISE_URL: 'http://127.0.0.1:1' }, 'needs OPENHANDS_CLUSTER_LISTEN'],
    [{ ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '8100' }, 'host:port'],
    [{ ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '0.0.0.0:8100' }, 'Set OPENHANDS_ADVERTISE_URL'],
    [
      { ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:8100', OPENHANDS_ADVERTISE_URL: 'https://10.0.0.5/a' },
      'http://host:port',
    ],
  ])('with %j', (settings, reason) => {
    expect(() => read(settings)).toThrow(reason)
  })
})
