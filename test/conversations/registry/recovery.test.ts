/** What is reported of a conversation that cannot be recovered now. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import type { RecoveryDeps } from '../../../src/conversations/registry/recovery.ts'
import { Recovery } from '../../../src/conversations/registry/recovery.ts'
import { ownedByAnother } from '../../../src/storage/postgres/ownership.ts'
import { until } from '../../support/until.ts'

const DEADLINE_OF = '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1'

/** Each attempt to open it fails. Returns the messages of the log after the second one. */
async function messagesOf(why: Problem): Promise<string[]> {
  const lines: string[] = []
  let attempts = 0
  const stopping = new AbortController()
  const recovery = new Recovery({
    // The storage of an instance alone.
    storage: {
      active: { set: async () => {}, clear: async () => {}, ids: async () => [] },
      availability: {},
    } as unknown as RecoveryDeps['storage'],
    logger: pino({ level: 'info' }, { write: (line) => void lines.push(line) }),
    deadlines: { postpone: () => {}, setLeft: () => {} },
    isKnown: async () => true,
    async open() {
      attempts++
      throw why
    },
    drop: async () => {},
    signal: stopping.signal,
  })
  await recovery.expire(DEADLINE_OF)
  await until('another attempt', async () => attempts > 1)
  stopping.abort()
  return lines.map((line) => String(JSON.parse(line).msg))
}

test('a deadline of a conversation that another instance has is tried again, without an error in the log', async () => {
  expect(await messagesOf(ownedByAnother())).toEqual([])
})

test('each failure of the disk is reported', async () => {
  const [first] = await messagesOf(new Problem('storage_full', 'The disk is full.'))
  expect(first).toBe('this conversation could not be recovered')
})
