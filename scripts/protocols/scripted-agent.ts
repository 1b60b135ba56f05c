/** What the agent does in the check of the protocols, whatever client speaks to it. */
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { PIXEL } from './programs/story/story-client.ts'
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

const LOOKS_AROUND: ScriptedTurn = {
  reasoning: 'Two at once.',
  calls: ['*', '**/*.md'].map((pattern) => ({ name: 'Glob', arguments: { pattern } })),
}
const DELEGATES: ScriptedTurn = {
  calls: [
    {
      name: 'Task',
      arguments: { description: 'A part', prompt: 'small part', subagent_type: 'general-purpose' },
    },
  ],
}
/** It works long enough to get a message meanwhile. */
const LINGERS: ScriptedTurn = { ...PLANS, text: 'I take my time '.repeat(10), chunk_delay_ms: 100 }
const TORN: ScriptedTurn = { text: 'lost words and more lost words', cut_after: 3, chunk_delay_ms: 100 }

const GREETS: ScriptedTurn = { reasoning: 'They greet.', text: 'Hello there, I am the agent.' }

const TURNS: Readonly<Record<string, ScriptedTurn>> = {
  Hello: GREETS,
  plan: PLANS,
  compute: COMPUTES,
  'look up': LOOKS_UP,
  'which one': ASKS,
  slowly: WORDS,
  endless: ENDLESS,
  'look around': LOOKS_AROUND,
  delegate: DELEGATES,
  'small part': { text: 'The small part is done.' },
  linger: LINGERS,
  torn: TORN,
}

/** Selects by the last of the words: a message may begin with earlier ones. What the agent says of a result begins with `Read: `. */
export function agentTurn({ messages, attempt }: ScriptedQuestion): ScriptedTurn {
  const last = messages.at(-1)
  const said = last ? textIn(last) : ''
  // A message that was sent during an answer is before it.
  const user = messages.findLast(({ role }) => role === 'user')
  if (user && textIn(user) === 'hurry up') return { text: 'I hurry.' }
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 300)}` }
  if (said.includes('picture')) return { text: said.includes(PIXEL) ? 'I see a pixel.' : 'I see nothing.' }
  if (said.includes('torn') && attempt > 0) return { text: 'In one piece.' }
  const [word = ''] = Object.keys(TURNS).toSorted((one, other) => said.lastIndexOf(other) - said.lastIndexOf(one))
  return said.includes(word) ? (TURNS[word] ?? GREETS) : GREETS
}

const textIn = ({ content }: ScriptedMessage): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '')
