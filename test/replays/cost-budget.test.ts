/** How the budget of a replay is divided. */
import { expect, test } from 'vitest'
import type { ReplayRow } from '../../src/contract/replay.ts'
import { CostBudget } from '../../src/replays/cost-budget.ts'

const row = (id: string, status: ReplayRow['status'], cost_usd = 0): ReplayRow => ({
  from_conversation_id: 'original',
  at_seq: 1,
  llm_config: 0,
  attempt: 1,
  conversation_id: id,
  status,
  cost_usd,
})

test('a fork waits while others may spend all that is left, and gets what they did not spend', async () => {
  const budget = new CostBudget(1)
  let rows = [row('a', 'running'), row('b', 'pending'), row('c', 'pending')]
  budget.keep('a', 1)
  const share = budget.reserve('b', () => rows)
  rows = [row('a', 'completed', 0.4), row('b', 'pending'), row('c', 'pending')]
  budget.release('a')
  expect(await share).toBeCloseTo(0.3)
  expect(await budget.reserve('b', () => rows)).toBe(await share)
  expect(await budget.reserve('c', () => rows)).toBeCloseTo(0.3)
})

test('nothing is left for a fork when all others have ended and spent it', async () => {
  const budget = new CostBudget(1)
  const rows = [row('a', 'completed', 0.7), row('b', 'error', 0.4), row('c', 'pending')]
  expect(await budget.reserve('c', () => rows)).toBe(0)
})
