/** What every OpenAI-compatible endpoint demands of a request: the results of an answer's calls right behind it, in their order. */
import { expect } from 'vitest'
import type { ScriptedMessage } from '../../src/llm/scripted/script.ts'

export function expectWholeTurns(messages: readonly ScriptedMessage[]): void {
  let expected: string[] = []
  for (const { role, tool_calls: calls, tool_call_id } of messages) {
    if (role === 'tool') expect(tool_call_id).toBe(expected.shift())
    else expect(expected, `no result before the next message, of the ${role}`).toEqual([])
    if (role === 'assistant') expected = ((calls ?? []) as readonly { id: string }[]).map(({ id }) => id) // as the wire format has them
  }
  expect(expected, 'no result at the end').toEqual([])
}
