/** The settings of several instances: what is accepted, and what is refused with a reason. */
import { describe, expect, test } from 'vitest'
import { readCluster } from '../../src/config/cluster-address.ts'

const DATABASE = { OPENHANDS_DATABASE_URL: 'postgresql://user@127.0.0.1/name' }
const read = (settings: Readonly<Record<string, string>>) => readCluster((name) => settings[name])

test('without a listener there is no cluster, and a loopback address needs no permission', () => {
  expect(read(DATABASE)).toBeUndefined()
  expect(read({ ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '[::1]:8100' })).toEqual({
    host: '::1',
    port: 8100,
    advertiseUrl: undefined,
  })
})

test('an address that others can reach is accepted with the permission for plain connections only', () => {
  const settings = { ...DATABASE, OPENHANDS_CLUSTER_LISTEN: '10.0.0.5:8100' }
  expect(() => read(settings)).toThrow('OPENHANDS_CLUSTER_PLAIN=1')
  expect(read({ ...settings, OPENHANDS_CLUSTER_PLAIN: '1' })?.port).toBe(8100)
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
