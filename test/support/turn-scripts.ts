/** What a model says in one turn, at random, for the properties of those who read it. */
import { array, constantFrom, integer, option, record, tuple } from 'fast-check'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { call, setBench, tool } from '../conversations/fixtures.ts'

/** Resolves to a bench whose model plays the script that `play` was called with last. */
export async function setTurnBench() {
  let script: readonly ScriptedTurn[] = []
  let next = 0
  const bench = await setBench({
    script: () => script[next++] ?? { text: 'The end.' },
    tools: [
      tool('Work', async () => ({ output: 'done' })),
      tool('Fail', async () => Promise.reject(new Error('broken'))),
    ],
  })
  return Object.assign(bench, { play: (turns: readonly ScriptedTurn[]) => void ([script, next] = [turns, 0]) })
}

const words = array(constantFrom('one', 'two', ' ', '\n', 'ü', '😀'), { maxLength: 8 }).map((parts) => parts.join(''))
const said = record({ reasoning: words, text: words.map((text) => `x${text}`) }, { requiredKeys: ['text'] })
const calls = array(
  constantFrom('Work', 'Fail').map((name) => call(name)),
  { maxLength: 3 },
)
const cut = option(integer({ min: 1, max: 4 }), { nil: undefined })

/** Answers with calls, of which some are cut off and asked for once more, and a last one without calls. */
export const turnScripts = array(tuple(said, calls, cut), { minLength: 1, maxLength: 4 }).map((answers) =>
  answers.flatMap(([answer, own, cutAfter], at): ScriptedTurn[] => {
    const whole = { ...answer, ...(own.length > 0 && at < answers.length - 1 && { calls: own }) }
    return cutAfter === undefined ? [whole] : [{ ...answer, cut_after: cutAfter }, whole]
  }),
)
