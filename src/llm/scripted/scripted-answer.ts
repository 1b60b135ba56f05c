/** Sends a scripted turn as a Chat Completions server would: in chunks, or as one document. */
import type { ScriptedQuestion, ScriptedTurn } from './script.ts'

/** Arguments are streamed in pieces of this many characters, similar to a model's tokens. */
const ARGUMENT_PIECE = 16

export function* chunksOf(turn: ScriptedTurn, question: ScriptedQuestion): Generator<string> {
  const base = baseOf('chat.completion.chunk', question)
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
  const chunk = (delta: object, finish: string | null = null) =>
    event({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })

  yield chunk({ role: 'assistant', content: '' })
  for (const piece of words(turn.reasoning)) yield chunk({ reasoning_content: piece })
  for (const piece of words(turn.text)) yield chunk({ content: piece })
  for (const [index, call] of callsOf(turn, question).entries()) {
    const { name, arguments: text } = call.function
    yield chunk({ tool_calls: [{ ...call, index, function: { name, arguments: '' } }] })
    for (let at = 0; at < text.length; at += ARGUMENT_PIECE) {
      yield chunk({ tool_calls: [{ index, function: { arguments: text.slice(at, at + ARGUMENT_PIECE) } }] })
    }
  }
  if (turn.error !== undefined) return yield event({ error: turn.error })
  yield chunk({}, finishReason(turn))
  if (turn.usage !== null) yield event({ ...base, choices: [], usage: turn.usage ?? estimateUsage(turn, question) })
  yield 'data: [DONE]\n\n'
}

export function wholeAnswer(turn: ScriptedTurn, question: ScriptedQuestion): object {
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

function words(text = ''): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? []
}

/** Ids count the answers of the conversation: ids are unique in a conversation, also across a restart. */
function callsOf(turn: ScriptedTurn, { body }: ScriptedQuestion) {
  const answers = body.messages.filter(({ role }) => role === 'assistant').length
  return (turn.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${answers + 1}_${index + 1}`,
    type: 'function',
    function: {
      name: call.name,
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
    },
  }))
}

function finishReason(turn: ScriptedTurn): string | null {
  if (turn.finish_reason !== undefined) return turn.finish_reason
  return turn.calls?.length ? 'tool_calls' : 'stop'
}

/** Four characters per token, as in English. */
function estimateUsage(turn: ScriptedTurn, { text }: ScriptedQuestion) {
  const prompt_tokens = Math.ceil(text.length / 4)
  const said = `${turn.reasoning ?? ''}${turn.text ?? ''}${JSON.stringify(turn.calls ?? '')}`
  const completion_tokens = Math.ceil(said.length / 4)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}
