/** What a strict endpoint checks in the messages of a Chat Completions request, and which requests ask for a summary. */
import type { ScriptedMessage, ScriptedQuestion } from '../../src/llm/scripted/script.ts'

/** Returns what is invalid: a call without its result, a result without its call, or no message of the user first. */
export function faultsIn(messages: readonly ScriptedMessage[]): string[] {
  const faults: string[] = []
  let expected: string[] = []
  const sent = messages.filter(({ role }) => role !== 'system')
  if (sent[0]?.role !== 'user') faults.push('the first message is not of the user')
  sent.forEach((message, at) => {
    if (message.role === 'tool') {
      const id = String(message['tool_call_id'])
      if (!expected.includes(id)) faults.push(`message ${at}: a result of ${id} without its call`)
      expected = expected.filter((each) => each !== id)
      return
    }
    if (expected.length > 0) faults.push(`message ${at}: no result of ${expected.join(', ')}`)
    const calls = (message['tool_calls'] ?? []) as { id: string }[]
    expected = calls.map(({ id }) => id)
  })
  if (expected.length > 0) faults.push(`no result of ${expected.join(', ')}`)
  return faults
}

export const asksForSummary = ({ text }: Pick<ScriptedQuestion, 'text'>) =>
  text.includes('Write a summary from which the agent can continue')

/** The texts of all messages of the user. */
export const userTexts = (messages: readonly ScriptedMessage[]): string =>
  messages
    .filter(({ role }) => role === 'user')
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
    .join('\n')
