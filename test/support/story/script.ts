/** What the model of the one story says, and what the conversation of every entrance is made of. */
import type { ScriptedQuestion, ScriptedTurn } from '../../../src/llm/scripted/script.ts'

/** What the user says: each starts another part of the story. */
export const SAID = {
  begin: 'begin the work',
  talk: 'talk to me',
  ask: 'ask me before',
  hang: 'hang on',
  hangLonger: 'now hang on longer',
  again: 'once again',
} as const

/** The calls that are asked for, in order; the third one is that of the subagent, and a kill comes before the decision about the last one. */
export const ASKED = ['echo one > notes.txt', 'rm notes.txt', 'echo three > child.txt', 'echo four > late.txt'] as const

export const REASON = 'The notes are still needed.'
export const ANSWERS = ['SQLite', 'Postgres'] as const
/** The beginning of an answer that takes minutes. */
export const ENDLESS = 'This answer has no end'
/** One piece: whoever interrupts after it interrupts the same text. */
const BEGINNING = { choices: [{ index: 0, delta: { content: ENDLESS } }] }

/** The same for all. The command line has no choice of tools. */
export const TOOLS = ['Bash', 'FileEditor', 'TaskTracker', 'AskUserQuestion', 'Task'] as const
export const ALLOWED = ['Edit(plan.txt)', 'Bash(sleep:*)', 'Edit(started)'] as const

export const FILES = { 'notes.txt': 'one\n', 'plan.txt': 'two\n', 'child.txt': 'three\n' } as const

const QUESTION = {
  question: 'Which database?',
  header: 'Database',
  options: ANSWERS.map((label) => ({ label, description: `About ${label}.` })),
  multiSelect: false,
}
const CHILD = 'write a file for me'

const call = (name: string, input: object) => ({ name, arguments: { ...input } })
const bash = (command: string) => call('Bash', { command })

const WORK = [
  { text: 'First the notes.', calls: [bash(ASKED[0])] },
  { calls: [call('FileEditor', { command: 'create', path: 'plan.txt', file_text: 'two\n' })] },
  { calls: [bash(ASKED[1])] },
  { calls: [call('AskUserQuestion', { questions: [QUESTION] })] },
  { calls: [call('Task', { description: 'a file', prompt: CHILD, subagent_type: 'general-purpose' })] },
]
const CHILD_WORK = [{ calls: [bash(ASKED[2])] }]

/** When the file appears, a signal ends the process that made it: a list of commands would go on with the next one. */
const HANG = 'sleep 60 > started'

/** An estimate would depend on the length of paths. */
const usage = { prompt_tokens: 10, completion_tokens: 5 }

/** The last answers count what the model has read: the same history leads to the same answer. */
export function storyTurn({ messages }: ScriptedQuestion): ScriptedTurn {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const said = JSON.stringify(messages[at]?.content)
  const step = messages.slice(at).filter(({ role }) => role === 'tool').length
  return { ...turnFor(said, step, messages.length), usage }
}

function turnFor(said: string, step: number, read: number): ScriptedTurn {
  if (said.includes(CHILD)) return CHILD_WORK[step] ?? { text: 'The file is there.' }
  if (said.includes(SAID.begin)) return WORK[step] ?? { text: `Done: ${read} messages.` }
  if (said.includes(SAID.talk)) return { raw: [`data: ${JSON.stringify(BEGINNING)}\n\n`], hang: true }
  if (said.includes(SAID.ask)) return step === 0 ? { calls: [bash(ASKED[3])] } : { text: `Asked: ${read} messages.` }
  if (said.includes(SAID.hang)) return { calls: [bash(HANG)] }
  return { text: `Over: ${read} messages.` }
}
