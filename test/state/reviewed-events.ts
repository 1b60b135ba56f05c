/**
 * Compares the events of intents with those that were reviewed. Write the files again with `vitest run -u test/state`, and
 * review each line that differs.
 */
import { join } from 'node:path'
import { expect } from 'vitest'
import { Event } from '../../src/contract/events/event.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import type { State } from '../../src/state/state.ts'
import { stored } from '../conversations/events.ts'

export async function expectReviewed<Situation extends string>(
  name: string,
  intents: Readonly<Record<string, Intent>>,
  situations: readonly Situation[],
  stateIn: (situation: Situation) => State,
): Promise<void> {
  const lines = Object.entries(intents).flatMap(([intent, given]) => {
    const outcomes = situations.map((situation) => ({ situation, text: outcomeOf(stateIn(situation), given) }))
    const alike = [...Map.groupBy(outcomes, ({ text }) => text)]
    return alike.flatMap(([text, all]) => [`${intent}: ${all.map(({ situation }) => situation).join('; ')}`, text])
  })
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(join(import.meta.dirname, 'reviewed', `${name}.txt`))
}

/** A line for each event, or for the problem. */
function outcomeOf(state: State, intent: Intent): string {
  const outcome = decide(state, intent)
  if (outcome instanceof Problem) return `  ${outcome.code}: ${outcome.message}`
  for (const [at, draft] of outcome.entries()) expect(Event.safeParse(stored(draft, at + 1)).error).toBeUndefined()
  return outcome.map((draft) => `  ${JSON.stringify(draft)}`).join('\n')
}
