/** What the scripted model says in the tests of the AI SDK. */
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { ASKS } from './asked-question.ts'

export const LOOK_UP_BY_PAGE = {
  name: 'look_up',
  description: 'Looks an order up.',
  input_schema: { type: 'object', properties: { number: { type: 'string' } } },
}

let cuts = 0

/** What the scripted model does with the last message, or with the results of its calls. */
export function uiChatTurn({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 200)}` }
  if (said.includes('touch')) return { text: 'Now.', calls: [bash('echo run >> made'), bash('touch other')] }
  if (said.includes('wait')) return { text: 'I wait.', calls: [bash('until [ -e go ]; do sleep 0.1; done; echo over')] }
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('which')) return ASKS
  if (said.includes('slowly')) return { text: 'one two three four five six seven', chunk_delay_ms: 60 }
  if (said.includes('endless')) return { text: 'word '.repeat(300), chunk_delay_ms: 500 }
  if (said.includes('cut off') && cuts++ === 0) return { text: 'lost words', chunk_delay_ms: 60, cut_after: 1 }
  if (said.includes('fail')) return { status: 400, error: { message: 'no such thing' } }
  if (said.includes('count')) return { text: `Answer ${JSON.stringify(messages).match(/count/g)?.length}.` }
  return { reasoning: 'A greeting.', text: 'Hello there.' }
}

const bash = (command: string) => ({ name: 'Bash', arguments: { command } })
