/** What readers of a turn are shown: live and replayed the same. */
import { assert, asyncProperty } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { followTurn, readTurn } from '../../src/protocols/items/follow-turn.ts'
import type { TurnChange } from '../../src/protocols/items/turn-changes.ts'
import { setTurnBench, turnScripts } from '../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

test('property: live and replayed changes are equal, and their positions grow', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
      const { log } = conversation
      const { seq: start } = await conversation.post({ message: 'go', run: false })
      const live: TurnChange[] = []
      const following = (async () => {
        for await (const { change } of followTurn(log, start, new AbortController().signal))
          if (change) live.push(change)
      })()
      await conversation.run()
      await following

      const replayed: TurnChange[] = []
      for await (const { change } of readTurn(log, start)) if (change) replayed.push(change)
      expect(merged(live)).toEqual(merged(replayed))
      const positions = live.map(({ position }) => position)
      expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b))
      // What a reader has after any change, and what is replayed after it, is the whole.
      for (const seen of positions) {
        const rest = merged(replayed).filter(({ position }) => position > seen)
        const had = merged(live)
          .filter(({ position }) => position <= seen)
          .map(keyOf)
        expect(new Set([...had, ...rest.map(keyOf)])).toEqual(new Set(merged(replayed).map(keyOf)))
      }
    }),
    { numRuns: 25 },
  )
})

/** Pieces of one text as one, without the attempts that were given up. */
function merged(changes: readonly TurnChange[]): TurnChange[] {
  const retracted = new Set(changes.flatMap((change) => (change.type === 'retracted' ? [change.messageId] : [])))
  const kept = changes.filter((change) => !('messageId' in change && retracted.has(change.messageId)))
  return kept.reduce<TurnChange[]>((all, change) => {
    const last = all.at(-1)
    if (last?.type !== 'grown' || change.type !== 'grown') return [...all, change]
    expect([change.messageId, change.from]).toEqual([last.messageId, last.from + last.text.length])
    return [...all.slice(0, -1), { ...last, text: last.text + change.text, position: change.position }]
  }, [])
}

const keyOf = (change: TurnChange): string =>
  `${change.type} ${'kind' in change ? `${change.kind} ${change.messageId}` : change.type === 'call' || change.type === 'result' ? change.call.tool_use_id : ''}`
