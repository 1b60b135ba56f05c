/** What the model of the examples answers: it depends on the words of the last message alone. */
import type { ScriptedQuestion, ScriptedTurn } from '../../../src/llm/scripted/script.ts'

const bash = (command: string, id = 'call_1') => ({ id, name: 'Bash', arguments: { command } })

const question = (text: string, header: string, labels: readonly string[]) => ({
  question: text,
  header,
  options: labels.map((label) => ({ label, description: '' })),
  multiSelect: header === 'Parts',
})
const QUESTIONS = [
  question('Which database?', 'Database', ['SQLite', 'PostgreSQL']),
  question('Which parts?', 'Parts', ['Code', 'Tests', 'Docs']),
]
const REVIEW = { description: 'Look at it', prompt: 'Look at the changes.', subagent_type: 'reviewer' }

type Call = NonNullable<ScriptedTurn['calls']>[number]

/** Words of a message, and the calls that the model makes for them. Other messages get an answer without a call. */
const CALLS: readonly (readonly [word: string, call: Call, ...others: Call[]])[] = [
  ['deploy', bash('git push'), bash('./restart.sh production', 'call_2')],
  ['database', { id: 'call_1', name: 'AskUserQuestion', arguments: { questions: QUESTIONS } }],
  ['order', { id: 'call_1', name: 'look_up_order', arguments: { number: '17' } }],
  ['review', { id: 'call_1', name: 'Task', arguments: REVIEW }],
  ['test', bash('echo 3 passed')],
  ['file', bash('ls')],
]

export function answerFor({ messages, body }: ScriptedQuestion): ScriptedTurn {
  const said = textOf(messages.findLast(({ role }) => role === 'user')?.content).toLowerCase()
  if (messages.at(-1)?.role === 'tool') return { text: 'Done.' }
  const offered = JSON.stringify(body['tools'] ?? [])
  const [, ...calls] = CALLS.find(([word, { name }]) => said.includes(word) && offered.includes(`"${name}"`)) ?? ['']
  if (calls.length > 0) return { calls }
  return { text: said.includes('json') ? '{"passed": 3, "failed": 0}' : 'Done.' }
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content ?? '')
}
