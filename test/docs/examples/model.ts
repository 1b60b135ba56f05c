/** What the model of the examples answers: it depends on the words of the last message alone. */
import type { ScriptedQuestion, ScriptedTurn } from '../../../src/llm/scripted/script.ts'

type Call = NonNullable<ScriptedTurn['calls']>[number]

const bash = (command: string, id = 'call_1'): Call => ({ id, name: 'Bash', arguments: { command } })

const question = (text: string, header: string, labels: readonly string[]) => ({
  question: text,
  header,
  options: labels.map((label) => ({ label, description: '' })),
  multiSelect: header === 'Parts',
})
const ask = (id: string, ...questions: readonly object[]): Call => ({
  id,
  name: 'AskUserQuestion',
  arguments: { questions },
})

const DATABASE = question('Which database?', 'Database', ['SQLite', 'PostgreSQL'])
const PARTS = question('Which parts?', 'Parts', ['Code', 'Tests', 'Docs'])
const PLACE = question('Where should the backup be?', 'Place', ['Here', 'Elsewhere'])
const ORDER: Call = { id: 'call_3', name: 'look_up_order', arguments: { number: '17' } }
const REVIEW = { description: 'Look at it', prompt: 'Look at the changes.', subagent_type: 'reviewer' }

type Reply = { readonly word: string; readonly turns: readonly (readonly Call[])[]; readonly text?: string }

/** What the model does when a message has the word: the calls of each turn, and its last answer. */
const REPLIES: readonly Reply[] = [
  { word: 'back up', turns: [[bash('mkdir backup')], [ask('call_2', PLACE)], [ORDER]] },
  { word: 'six times seven', turns: [[bash('echo 42')]], text: 'It is 42.' },
  { word: 'deploy', turns: [[bash('git push'), bash('./restart.sh production', 'call_2')]] },
  { word: 'database', turns: [[ask('call_1', DATABASE, PARTS)]] },
  { word: 'order', turns: [[ORDER]], text: 'Order 17 has shipped.' },
  { word: 'review', turns: [[{ id: 'call_1', name: 'Task', arguments: REVIEW }]] },
  { word: 'test', turns: [[bash('echo 3 passed')]], text: '3 tests passed.' },
  { word: 'files', turns: [[bash('ls -d .')]] },
  { word: 'directory', turns: [[bash('mkdir made')]] },
  { word: 'names.txt', turns: [[bash('echo one > names.txt')]] },
  { word: 'say one', turns: [], text: 'One.' },
  { word: 'say two', turns: [], text: 'Two.' },
  { word: 'hello', turns: [], text: 'Hello.' },
  { word: 'json', turns: [], text: '{"passed": 3, "failed": 0}' },
]

/** Calls of tools that the conversation does not have are left out. */
export function answerFor({ messages, body }: ScriptedQuestion): ScriptedTurn {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const said = textOf(messages[last]?.content).toLowerCase()
  const { turns, text = 'Done.' } = REPLIES.find(({ word }) => said.includes(word)) ?? { turns: [] }
  const offered = JSON.stringify(body['tools'] ?? [])
  const possible = turns.filter((calls) => calls.every(({ name }) => offered.includes(`"${name}"`)))
  const calls = possible[messages.slice(last).filter(({ role }) => role === 'assistant').length]
  return calls ? { calls: [...calls] } : { text }
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content ?? '')
}
