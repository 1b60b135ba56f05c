/** Whether a connection would be refused, as far as that can be known in a short time. */
import { afterEach, expect, test, vi } from 'vitest'
import { AddressRefused, foreseeRefusal } from '../../src/security/guarded-connector.ts'
import { createAddressRules } from '../../src/security/public-address.ts'

afterEach(() => void vi.useRealTimers())

const RULES = createAddressRules(['10.0.0.7'], () => false)
const lookupOf = (...addresses: readonly string[]) => {
  const names: string[] = []
  const lookup = async (name: string) => {
    names.push(name)
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }
  return { names, lookup }
}

test.each<[string, readonly string[], RegExp | undefined, readonly string[]]>([
  ['https://10.0.0.1/x', [], /private/, []],
  ['https://10.0.0.7/x', [], undefined, []],
  ['https://[::1]:8080/', [], /loopback/, []],
  ['https://a.example/', ['93.184.216.34'], undefined, ['a.example']],
  ['https://a.example/', ['10.0.0.1', '127.0.0.1'], /private/, ['a.example']],
  ['https://a.example/', ['127.0.0.1', '10.0.0.1'], /loopback/, ['a.example']],
  ['https://a.example/', ['10.0.0.1', '93.184.216.34'], undefined, ['a.example']],
  ['https://a.example/', [], /it has no address/, ['a.example']],
])('%s with the addresses %j: %s', async (url, addresses, refusal, names) => {
  vi.useFakeTimers()
  const { lookup, names: asked } = lookupOf(...addresses)
  const why = await foreseeRefusal(RULES, lookup, url)
  if (refusal) expect(why).toMatch(refusal)
  else expect(why).toBeUndefined()
  expect([asked, vi.getTimerCount()]).toEqual([names, 0])
})

test('a name that does not resolve, or not in time, is not refused yet', async () => {
  vi.useFakeTimers()
  const failing = () => Promise.reject(new Error('ENOTFOUND'))
  expect(await foreseeRefusal(RULES, failing, 'https://a.example')).toBeUndefined()
  const refusing = () => Promise.reject(new AddressRefused('no'))
  expect(await foreseeRefusal(RULES, refusing, 'https://a.example')).toBe('no')
  let isOver = false
  const waiting = foreseeRefusal(RULES, () => new Promise(() => {}), 'https://a.example').then((why) => {
    isOver = true
    return why
  })
  await vi.advanceTimersByTimeAsync(2999)
  expect(isOver).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await waiting).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})
