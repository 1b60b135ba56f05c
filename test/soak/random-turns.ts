/** What the model of a soak answers: at random, by the number in the message that it answers. */
import type { Script, ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { askCall } from '../conversations/actions.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'

const MAX_STEPS = 5
/** Of a plan, one more than the largest. */
const PLANS = 1_000_000
const LONG_ANSWER_WORDS = 400

/** A message that the model answers with turns of its own. */
export const planText = (random: Random): string => `Follow plan ${random.below(PLANS)}.`

/** Also for subagents, and for the messages of tasks. Requests without a plan are those of compactions. */
export const randomTurns: Script = ({ messages, attempt }) => {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && PLAN.test(JSON.stringify(content)))
  if (at < 0) return { text: 'So far, nothing was done.' }
  const plan = Number(PLAN.exec(JSON.stringify(messages[at]!.content))![1])
  const step = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  const random = createRandom(plan * MAX_STEPS * 2 + step)
  return turnOf(random, { step, attempt, messages })
}

const PLAN = /Follow plan (\d+)/

type Place = Pick<ScriptedQuestion, 'attempt' | 'messages'> & { readonly step: number }

function turnOf(random: Random, { step, attempt }: Place): ScriptedTurn {
  if (attempt === 0 && random.below(40) === 0) return random.pick(FAULTS)
  if (step >= random.below(MAX_STEPS)) return { text: words(random, random.below(LONG_ANSWER_WORDS)) }
  const calls = Array.from({ length: 1 + random.below(3) }, () => random.pick(CALLS)(random))
  return { reasoning: words(random, random.below(30)), text: words(random, random.below(20)), calls }
}

const FAULTS: readonly ScriptedTurn[] = [
  { status: 429, error: { message: 'slow down' }, headers: { 'retry-after': '0' } },
  { text: 'This answer does not end.', cut_after: 2 },
  { status: 500, error: { message: 'overloaded' } },
]

type Call = NonNullable<ScriptedTurn['calls']>[number]

const bash = (command: string, more: object = {}): Call => ({ name: 'Bash', arguments: { command, ...more } })

/** Those that are cheap are there more often. */
const CALLS: readonly ((random: Random) => Call)[] = [
  (random) => bash(`echo ${random.below(1000)}`),
  (random) => bash(`seq ${random.below(5000)}; cd /tmp; export COUNT=${random.below(9)}`),
  () => bash('echo "$TOKEN" > token; cat token; false'),
  () => bash('sleep 0.2; echo late', { run_in_background: true }),
  () => bash('sleep 5', { timeout: 1 }),
  (random) => ({ name: 'Write', arguments: { file_path: `file-${random.below(9)}`, content: words(random, 99) } }),
  (random) => ({ name: 'Read', arguments: { file_path: `file-${random.below(9)}` } }),
  (random) => ({ name: 'Grep', arguments: { pattern: `word${random.below(9)}` } }),
  () => ({ name: 'Glob', arguments: { pattern: '**/*' } }),
  (random) => askCall(`Go on with ${random.below(9)}?`),
  (random) => ({ name: 'look_up', arguments: { number: String(random.below(99)) } }),
  (random) => ({ name: 'mcp__odd__echo', arguments: { text: words(random, 9) } }),
  (random) => ({
    name: 'Task',
    arguments: { description: 'A part', prompt: planText(random), run_in_background: random.below(2) === 0 },
  }),
  () => ({ name: 'Bash', arguments: '{"command": "echo' }),
]

const words = (random: Random, count: number): string =>
  Array.from({ length: count }, () => `word${random.below(99)}`).join(' ')
