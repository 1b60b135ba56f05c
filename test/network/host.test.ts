import { describe, expect, test } from 'vitest'
import { parseHost, splitPort, formatTarget } from '../../src/network/host.ts'

const nameOf = (text: string) => {
  const host = parseHost(text)
  return host === undefined ? undefined : host.kind === 'name' ? host.name : `address ${host.address}`
}

test.each([
  ['Example.COM', 'example.com'],
  ['example.com.', 'example.com'],
  ['münchen.example', 'xn--mnchen-3ya.example'],
  ['XN--MNCHEN-3YA.example', 'xn--mnchen-3ya.example'],
  // Letters that only look different (full width, Roman numeral fifty).
  ['ｅxample.com', 'example.com'],
  ['ⅼocalhost', 'localhost'],
  ['_service.example.com', '_service.example.com'],
])('the name %s is %s', (text, name) => {
  expect(nameOf(text)).toBe(name)
})

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1.', '127.0.0.1'],
  ['127.1', '127.0.0.1'],
  ['2130706433', '127.0.0.1'],
  ['0x7f000001', '127.0.0.1'],
  ['0x7f.1', '127.0.0.1'],
  ['0177.0.0.01', '127.0.0.1'],
  ['017700000001', '127.0.0.1'],
  ['１２７.0.0.1', '127.0.0.1'],
  ['0', '0.0.0.0'],
  ['::1', '::1'],
  ['[::1]', '::1'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['[::ffff:127.0.0.1]', '127.0.0.1'],
  ['::ffff:7f00:1', '127.0.0.1'],
  ['[2001:DB8:0:0::1]', '2001:db8::1'],
])('the address %s is %s', (text, address) => {
  expect(nameOf(text)).toBe(`address ${address}`)
})

test.each([
  '',
  '.',
  'a..b',
  '-a.example',
  '256.1.1.1',
  '1.2.3.4.5',
  '[::1',
  '::1]',
  '[127.0.0.1]',
  'fe80::1%eth0',
  '[fe80::1%25eth0]',
  'ex%61mple.com',
  'user@example.com',
  'example.com/path',
  'example.com?x',
  'example.com#x',
  'a b.example',
  'a\0.example',
  'a\r\nb.example',
  'example.com\\@other.example',
  '*.example.com',
  'a'.repeat(64),
  'a.'.repeat(127) + 'a',
])('%j is not a host', (text) => {
  expect(nameOf(text)).toBeUndefined()
})

describe('a port', () => {
  test('is split from a name and from an address in brackets', () => {
    expect(splitPort('example.com:443')).toEqual({ host: 'example.com', port: '443' })
    expect(splitPort('example.com')).toEqual({ host: 'example.com', port: undefined })
    expect(splitPort('[::1]:443')).toEqual({ host: '[::1]', port: '443' })
    expect(splitPort('::1')).toBeUndefined()
    expect(splitPort(':443')).toBeUndefined()
  })

  test('follows an address as in a URL', () => {
    expect(formatTarget({ kind: 'address', address: '::1' }, 443)).toBe('[::1]:443')
    expect(formatTarget({ kind: 'name', name: 'example.com' }, 80)).toBe('example.com:80')
  })
})
