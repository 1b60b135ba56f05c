/** What the agent does in the check of the protocols, whatever client speaks to it. */
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { ASKS } from '../../test/support/asked-question.ts'

const TASKS = [
  { title: 'Read', status: 'done' },
  { title: 'Write', status: 'in_progress' },
]
const PLANS: ScriptedTurn = {
  text: 'I plan.',
  calls: [{ name: 'TaskTracker', arguments: { command: 'plan', task_list: TASKS } }],
}
const COMPUTES: ScriptedTurn = {
  text: 'I compute.',
  calls: [{ name: 'Bash', arguments: { command: 'echo $((40+2)) > answer && cat answer' } }],
}
const LOOKS_UP: ScriptedTurn = { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
const ENDLESS: ScriptedTurn = { text: 'word '.repeat(500), chunk_delay_ms: 60 }

const WORDS: ScriptedTurn = {
  reasoning: 'They count.',
  text: 'one two three four five six seven eight nine ten eleven twelve',
  chunk_delay_ms: 100,
}

const GREETS: ScriptedTurn = { reasoning: 'They greet.', text: 'Hello there, I am the agent.' }

const TURNS: Readonly<Record<string, ScriptedTurn>> = {
  Hello: GREETS,
  plan: PLANS,
  compute: COMPUTES,
  'look up': LOOKS_UP,
  'which one': ASKS,
  slowly: WORDS,
  endless: ENDLESS,
}

/** Selects by the last of the words: a message may begin with earlier ones. What the agent says of a result begins with `Read: `. */
export function agentTurn({ messages }: ScriptedQuestion): ScriptedTurn {
  const last = messages.at(-1)
  const said = last ? textIn(last) : ''
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 300)}` }
  const [word = ''] = Object.keys(TURNS).toSorted((one, other) => said.lastIndexOf(other) - said.lastIndexOf(one))
  return said.includes(word) ? (TURNS[word] ?? GREETS) : GREETS
}

const textIn = ({ content }: ScriptedMessage): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '')
