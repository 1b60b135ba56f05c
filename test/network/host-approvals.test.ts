import { describe, expect, test } from 'vitest'
import type { AccessRow } from '../../src/network/access-log.ts'
import { AccessLog, OTHER_HOSTS } from '../../src/network/access-log.ts'
import type { ApprovalDecision, ApprovalRequest } from '../../src/network/host-approvals.ts'
import { HostApprovals } from '../../src/network/host-approvals.ts'
import { parseHost } from '../../src/network/host.ts'

const host = (name: string) => parseHost(name)!

function setUp(deadlineMs = 60_000, onAsked = async (): Promise<void> => {}) {
  const asked: ApprovalRequest[] = []
  const answered: (ApprovalDecision & { readonly id: string })[] = []
  const asks = new HostApprovals({
    onAsked: async (ask) => {
      asked.push(ask)
      await onAsked()
    },
    onAnswered: ({ id }, answer) => answered.push({ id, ...answer }),
    deadlineMs,
  })
  return { asks, asked, answered }
}

describe('a host that is asked about', () => {
  test('is one request, whatever number of connections wait for it', async () => {
    const { asks, asked, answered } = setUp()
    const waiting = [1, 2, 3].map(() => asks.ask(host('a.example'), 443))
    await expect.poll(() => asks.pending.length).toBe(1)
    asks.answer(asked[0]!, 'allow')
    for (const answer of waiting) expect(await answer).toEqual({ behavior: 'allow', by: 'user' })
    expect(asked).toHaveLength(1)
    expect(answered).toHaveLength(1)
    // An answer is for the connections that waited.
    void asks.ask(host('a.example'), 443)
    await expect.poll(() => asked.length).toBe(2)
    asks.close()
  })

  test('is denied if there is no decision, if the server stops, and if it cannot be stored', async () => {
    expect(await setUp(1).asks.ask(host('a.example'), 443)).toEqual({ behavior: 'deny', by: 'timeout' })
    const { asks } = setUp()
    const waiting = asks.ask(host('a.example'), 443)
    asks.close()
    expect(await waiting).toEqual({ behavior: 'deny', by: 'closing' })
    const full = setUp(60_000, () => Promise.reject(new Error('no room')))
    expect(await full.asks.ask(host('a.example'), 443)).toEqual({ behavior: 'deny', by: 'closing' })
  })

  test('is decided by a policy that lists it', async () => {
    const { asks } = setUp()
    const [first, second] = [asks.ask(host('a.example'), 443), asks.ask(host('b.example'), 443)]
    asks.recheck((each) => (each.kind === 'name' && each.name === 'a.example' ? 'allow' : undefined))
    expect(await first).toEqual({ behavior: 'allow', by: 'policy' })
    expect(asks.pending).toHaveLength(1)
    asks.close()
    await second
  })

  test('is denied immediately if too many others wait', async () => {
    const { asks, asked } = setUp()
    const all = Array.from({ length: 1000 }, (_, i) => asks.ask(host(`h${i}.example`), 443))
    expect(await all[999]).toBeUndefined()
    expect(asked).toHaveLength(20)
    asks.close()
    await Promise.all(all)
  })
})

test('ten thousand decisions become a few rows, with their number', async () => {
  const written: AccessRow[][] = []
  const log = new AccessLog((rows) => written.push([...rows]), 60_000)
  for (let i = 0; i < 10_000; i++) {
    const outcome = i % 2 === 0 ? 'allowed' : 'denied'
    log.add({ host: host(i < 5000 ? 'a.example' : `h${i}.example`), port: 443, outcome, reason: outcome })
  }
  log.flush()
  const rows = written.flat()
  expect(rows.length).toBeLessThanOrEqual(22)
  expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(10_000)
  expect(rows).toContainEqual({ host: 'a.example', port: 443, allowed: true, reason: 'allowed', count: 2500 })
  expect(rows).toContainEqual(expect.objectContaining({ host: OTHER_HOSTS, port: undefined, allowed: false }))
  log.flush()
  expect(written).toHaveLength(1)
})
