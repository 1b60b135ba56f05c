/** A turn of a scripted model that asks the user. */
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'

const QUESTION = {
  question: 'Which database?',
  header: 'Database',
  multiSelect: false,
  options: [
    { label: 'SQLite', description: 'A file.' },
    { label: 'PostgreSQL', description: 'A server.' },
  ],
}

export const ASKS: ScriptedTurn = { calls: [{ name: 'AskUserQuestion', arguments: { questions: [QUESTION] } }] }
