import { describe, expect, test } from 'vitest'
import type { AccessRow } from '../../src/network/access-log.ts'
import { AccessLog, OTHER_HOSTS } from '../../src/network/access-log.ts'
import type { ApprovalDecision, ApprovalRequest } from '../../src/network/host-approvals.ts'
import { HostApprovals } from '../../src/network/host-approvals.ts'
import { parseHost } from '../../src/network/host.ts'

const host = (name: string) => parseHost(name)!
/** The signal of a connection that stays. */
const CONNECTED = new AbortController().signal

function setUp(deadlineMs = 60_000, onAsked = async (): Promise<void> => {}) {
  const asked: ApprovalRequest[] = []
  const answered: (ApprovalDecision & { readonly id: string })[] = []
  const asks = new HostApprovals({
    onRequest: async (ask) => {
      asked.push(ask)
      await onAsked()
    },
    onAnswered: ({ id }, answer) => answered.push({ id, ...answer }),
    deadlineMs,
    graceMs: 0,
  })
  return { asks, asked, answered }
}

const ALLOW: ApprovalDecision = { behavior: 'allow', by: 'user' }
const DENY: ApprovalDecision = { behavior: 'deny', by: 'user' }

describe('a host that is asked about', () => {
  test('is one request, whatever number of connections wait for it', async () => {
    const { asks, asked, answered } = setUp()
    const waiting = [1, 2, 3].map(() => asks.request(host('a.example'), 443, CONNECTED))
    await expect.poll(() => asks.pending.length).toBe(1)
    const stored: ApprovalRequest[] = []
    expect(await asks.answer(asked[0]!.id, ALLOW, async (ask) => void stored.push(ask))).toBe(true)
    for (const answer of waiting) expect(await answer).toEqual(ALLOW)
    expect([asked, stored]).toEqual([[asked[0]], [asked[0]]])
    expect(answered, 'its answer is stored by the caller').toEqual([])
    // An answer is for the connections that waited.
    void asks.request(host('a.example'), 443, CONNECTED)
    await expect.poll(() => asked.length).toBe(2)
    asks.close()
  })

  test('is denied if there is no decision, if the server stops, and if it cannot be stored', async () => {
    expect(await setUp(1).asks.request(host('a.example'), 443, CONNECTED)).toEqual({ behavior: 'deny', by: 'timeout' })
    const { asks } = setUp()
    const waiting = asks.request(host('a.example'), 443, CONNECTED)
    asks.close()
    expect(await waiting).toEqual({ behavior: 'deny', by: 'closing' })
    const full = setUp(60_000, () => Promise.reject(new Error('no room')))
    expect(await full.asks.request(host('a.example'), 443, CONNECTED)).toEqual({ behavior: 'deny', by: 'closing' })
  })

  test('is closed when no connection waits for it any more, and not while another one does', async () => {
    const { asks, asked, answered } = setUp()
    const connections = [new AbortController(), new AbortController()]
    const [first] = connections.map(({ signal }) => asks.request(host('a.example'), 443, signal))
    connections[0]!.abort()
    // A program that gave up has tried again.
    const again = new AbortController()
    connections[1]!.abort()
    void asks.request(host('a.example'), 443, again.signal)
    await new Promise((resolve) => setImmediate(resolve))
    expect([asks.pending.length, answered]).toEqual([1, []])
    again.abort()
    expect(await first).toEqual({ behavior: 'deny', by: 'gone' })
    expect([asks.pending, answered]).toEqual([[], [{ id: asked[0]!.id, behavior: 'deny', by: 'gone' }]])
    expect(asked).toHaveLength(1)
  })

  test('is decided by the first of many answers, when that is stored; the others find nothing to decide', async () => {
    const { asks, asked } = setUp()
    const waiting = asks.request(host('a.example'), 443, CONNECTED)
    await expect.poll(() => asked.length).toBe(1)
    const [{ id }] = asked as [ApprovalRequest]
    const storing = Promise.withResolvers<void>()
    const stored: ApprovalDecision[] = []
    const answers = [ALLOW, DENY, DENY].map((decision) =>
      asks.answer(id, decision, async () => {
        await storing.promise
        stored.push(decision)
      }),
    )
    let isOver = false
    void waiting.then(() => (isOver = true))
    await Promise.resolve()
    expect([isOver, asks.pending.length]).toEqual([false, 1])
    storing.resolve()
    expect(await Promise.all(answers)).toEqual([true, false, false])
    expect([await waiting, stored]).toEqual([ALLOW, [ALLOW]])
  })

  test('still waits after an answer that cannot be stored', async () => {
    const { asks, asked } = setUp()
    const waiting = asks.request(host('a.example'), 443, CONNECTED)
    await expect.poll(() => asked.length).toBe(1)
    const { id } = asked[0]!
    await expect(asks.answer(id, ALLOW, () => Promise.reject(new Error('no room')))).rejects.toThrow('no room')
    expect(asks.pending).toHaveLength(1)
    expect(await asks.answer(id, DENY, async () => {})).toBe(true)
    expect(await waiting).toEqual(DENY)
  })

  test('is decided by an answer that is being stored, even if the policy changes meanwhile', async () => {
    const { asks, asked, answered } = setUp()
    const waiting = [asks.request(host('a.example'), 443, CONNECTED), asks.request(host('b.example'), 443, CONNECTED)]
    await expect.poll(() => asked.length).toBe(2)
    const deny = () => asks.recheck(() => 'deny')
    expect(await asks.answer(asked[0]!.id, ALLOW, async () => deny())).toBe(true)
    const failing = asks.answer(asked[1]!.id, ALLOW, async () => {
      deny()
      throw new Error('no room')
    })
    // The second one was decided by the first change of the policy.
    expect(await failing).toBe(false)
    expect(await Promise.all(waiting)).toEqual([ALLOW, { behavior: 'deny', by: 'policy' }])
    expect(answered).toMatchObject([{ id: asked[1]!.id, by: 'policy' }])
  })

  test('is decided by a policy that lists it', async () => {
    const { asks } = setUp()
    const [first, second] = [
      asks.request(host('a.example'), 443, CONNECTED),
      asks.request(host('b.example'), 443, CONNECTED),
    ]
    asks.recheck((each) => (each.kind === 'name' && each.name === 'a.example' ? 'allow' : undefined))
    expect(await first).toEqual({ behavior: 'allow', by: 'policy' })
    expect(asks.pending).toHaveLength(1)
    asks.close()
    await second
  })

  test('is denied immediately if too many others wait', async () => {
    const { asks, asked } = setUp()
    const all = Array.from({ length: 1000 }, (_, i) => asks.request(host(`h${i}.example`), 443, CONNECTED))
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
