/** Sends a scripted turn as a Chat Completions server would: in chunks, or as one document. */
import type { ScriptedQuestion, ScriptedTurn } from './script.ts'
import { callsIn, estimateTokens, piecesOf, wordsIn } from './scripted-api.ts'
import type { ScriptedApi } from './scripted-api.ts'

export const CHAT_COMPLETIONS: ScriptedApi = {
  path: '/chat/completions',
  messagesOf: ({ messages }) => messages,
  chunksOf,
  wholeAnswer,
  errorBody: (error) => ({ error }),
}

function* chunksOf(turn: ScriptedTurn, question: ScriptedQuestion): Generator<string> {
  const base = baseOf('chat.completion.chunk', question)
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
  const chunk = (delta: object, finish: string | null = null) =>
    event({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })

  yield chunk({ role: 'assistant', content: '' })
  for (const piece of wordsIn(turn.reasoning)) yield chunk({ reasoning_content: piece })
  for (const piece of wordsIn(turn.text)) yield chunk({ content: piece })
  for (const [index, call] of callsOf(turn, question).entries()) {
    const { name, arguments: text } = call.function
    yield chunk({ tool_calls: [{ ...call, index, function: { name, arguments: '' } }] })
    for (const piece of piecesOf(text)) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  if (turn.error !== undefined) return yield event({ error: turn.error })
  yield chunk({}, finishReason(turn))
  if (turn.usage !== null) yield event({ ...base, choices: [], usage: turn.usage ?? estimateUsage(turn, question) })
  yield 'data: [DONE]\n\n'
}

function wholeAnswer(turn: ScriptedTurn, question: ScriptedQuestion): object {
  const calls = callsOf(turn, question)
  const message = {
    role: 'assistant',
    content: turn.text ?? null,
    ...(turn.reasoning !== undefined && { reasoning_content: turn.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return {
    ...baseOf('chat.completion', question),
    choices: [{ index: 0, message, finish_reason: finishReason(turn) }],
    ...(turn.usage !== null && { usage: turn.usage ?? estimateUsage(turn, question) }),
  }
}

function baseOf(object: string, { body }: ScriptedQuestion) {
  return { id: 'chatcmpl-scripted', object, created: 0, model: body['model'] }
}

function callsOf(turn: ScriptedTurn, question: ScriptedQuestion) {
  return callsIn(turn, question).map(({ id, name, arguments: text }) => ({
    id,
    type: 'function',
    function: { name, arguments: text },
  }))
}

function finishReason(turn: ScriptedTurn): string | null {
  if (turn.finish_reason !== undefined) return turn.finish_reason
  return turn.calls?.length ? 'tool_calls' : 'stop'
}

function estimateUsage(turn: ScriptedTurn, question: ScriptedQuestion) {
  const { input: prompt_tokens, output: completion_tokens } = estimateTokens(turn, question)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}
