/** The known failures of clients of other protocols, with which `npm run check:protocols` compares its results. */
import { describe, expect, test } from 'vitest'
import { judge, readBaseline } from '../../scripts/protocols/baseline.ts'
import { PROTOCOL_CLIENTS } from '../../scripts/protocols/clients.ts'

/** Lower it when entries go. */
const MOST_KNOWN = 107

const results = [{ case: 'text' }, { case: 'cancel', fault: 'It does not end.' }]

describe('a check', () => {
  test('passes if all that fails is known', () => {
    expect(judge(results, { 'It has no cancel.': ['cancel'] })).toEqual({ passed: 1, known: 1, faults: [] })
  })

  test('fails on a new failure, on a known one that passes, and on one that does not exist', () => {
    const { faults } = judge(results, { 'It has no text.': ['text', 'sound'] })
    expect(faults.map((fault) => fault.split('\n')[0])).toEqual([
      'FAILS cancel',
      expect.stringMatching(/^NOT KNOWN TO FAIL text: /),
      expect.stringMatching(/^NOT KNOWN TO FAIL sound: /),
    ])
  })
})

test('the known failures are of clients that are checked, are listed once, and become fewer', () => {
  const baseline = readBaseline()
  const names = PROTOCOL_CLIENTS.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(Object.keys(baseline)))
  const known = Object.entries(baseline).flatMap(([client, reasons]) =>
    Object.values(reasons).flatMap((cases) => cases.map((each) => `${client} ${each}`)),
  )
  expect(new Set(known).size).toBe(known.length)
  expect(known.length).toBeLessThanOrEqual(MOST_KNOWN)
})

test('each client has an exact version', () => {
  for (const { name, version } of PROTOCOL_CLIENTS)
    for (const each of version.split(', ')) expect(each, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
})
