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

/** Selects by the last message, and what the agent says of a result begins with `Read: `. */
export function agentTurn({ messages }: ScriptedQuestion): ScriptedTurn {
  const last = messages.at(-1)
  const said = last ? textIn(last) : ''
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 300)}` }
  if (said.includes('plan')) return PLANS
  if (said.includes('compute')) return COMPUTES
  if (said.includes('look up')) return LOOKS_UP
  if (said.includes('which one')) return ASKS
  if (said.includes('endless')) return ENDLESS
  return { reasoning: 'They greet.', text: 'Hello there, I am the agent.' }
}

const textIn = ({ content }: ScriptedMessage): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '')
