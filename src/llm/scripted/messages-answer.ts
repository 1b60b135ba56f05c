/**
 * Sends a scripted turn as Anthropic's Messages API would, with signed thinking, and refuses what that API refuses:
 * changed thinking, and tool calls whose results do not follow first.
 */
import { createHash } from 'node:crypto'
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from './script.ts'
import { callsIn, estimateTokens, piecesOf, wordsIn } from './scripted-api.ts'
import type { ScriptedApi } from './scripted-api.ts'

export const MESSAGES: ScriptedApi = {
  path: '/messages',
  messagesOf: ({ messages }) => messages.flatMap(withoutResults),
  faultIn: ({ messages }) => {
    const message = findFault(messages)
    return message === undefined ? undefined : { type: 'invalid_request_error', message }
  },
  chunksOf,
  wholeAnswer,
  errorBody: (error) => ({ type: 'error', error }),
}

type Block = { readonly type: string; readonly [key: string]: unknown }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests come from our own client and from tests
const blocksOf = ({ content }: ScriptedMessage) => (Array.isArray(content) ? (content as Block[]) : [])

/** The results of a turn come in the user's message, before what the user says. */
function withoutResults(message: ScriptedMessage): ScriptedMessage[] {
  if (!Array.isArray(message.content)) return [message]
  const results = blocksOf(message).filter(({ type }) => type === 'tool_result')
  const ownBlocks = blocksOf(message).filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map(({ content }) => ({ role: 'tool', content })),
    ...(ownBlocks.length > 0 || results.length === 0 ? [{ ...message, content: ownBlocks }] : []),
  ]
}

const signatureOf = (thinking: string) => `scripted-${createHash('sha256').update(thinking).digest('base64')}`

function findFault(messages: readonly ScriptedMessage[]): string | undefined {
  for (const [at, message] of messages.entries()) {
    if (message.role === messages[at - 1]?.role) return `messages.${at}: roles must alternate`
    for (const [place, { type, thinking, signature }] of blocksOf(message).entries()) {
      const isScripted = type === 'thinking' && String(signature).startsWith('scripted-')
      if (isScripted && signature !== signatureOf(String(thinking)))
        return `messages.${at}.content.${place}: Invalid \`signature\` in \`thinking\` block`
    }
    const calls = blocksOf(message).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []))
    const results = blocksOf(messages[at + 1] ?? message).slice(0, calls.length)
    if (calls.some((id, place) => results[place]?.['tool_use_id'] !== id))
      return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after`
  }
  return undefined
}

function* chunksOf(turn: ScriptedTurn, question: ScriptedQuestion): Generator<string> {
  const event = (type: string, more: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const usage = usageOf(turn, question)
  yield event('message_start', {
    message: {
      ...baseOf(question),
      content: [],
      stop_reason: null,
      ...(usage && { usage: { ...usage, output_tokens: 1 } }),
    },
  })
  yield event('ping')
  for (const [index, { start, deltas }] of scriptedBlocks(turn, question).entries()) {
    yield event('content_block_start', { index, content_block: start })
    for (const delta of deltas) yield event('content_block_delta', { index, delta })
    yield event('content_block_stop', { index })
  }
  if (turn.error !== undefined) return yield event('error', { error: turn.error })
  yield event('message_delta', {
    delta: { stop_reason: stopReason(turn), stop_sequence: null },
    ...(usage && { usage: { output_tokens: usage['output_tokens'] } }),
  })
  yield event('message_stop')
}

function wholeAnswer(turn: ScriptedTurn, question: ScriptedQuestion): object {
  return {
    ...baseOf(question),
    content: scriptedBlocks(turn, question).map(({ whole }) => whole()),
    stop_reason: stopReason(turn),
    usage: usageOf(turn, question),
  }
}

type ScriptedBlock = { readonly start: object; readonly deltas: readonly object[]; readonly whole: () => object }

function scriptedBlocks(turn: ScriptedTurn, question: ScriptedQuestion): ScriptedBlock[] {
  const { reasoning: thinking, text } = turn
  const blocks: ScriptedBlock[] = []
  if (thinking !== undefined) {
    const signature = signatureOf(thinking)
    const thinkingDeltas = wordsIn(thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece }))
    blocks.push({
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [...thinkingDeltas, { type: 'signature_delta', signature }],
      whole: () => ({ type: 'thinking', thinking, signature }),
    })
  }
  if (text !== undefined) {
    const deltas = wordsIn(text).map((piece) => ({ type: 'text_delta', text: piece }))
    blocks.push({ start: { type: 'text', text: '' }, deltas, whole: () => ({ type: 'text', text }) })
  }
  for (const { id, name, arguments: input } of callsIn(turn, question)) {
    const start = { type: 'tool_use', id, name, input: {} }
    const deltas = piecesOf(input).map((partial_json) => ({ type: 'input_json_delta', partial_json }))
    blocks.push({ start, deltas, whole: () => ({ ...start, input: JSON.parse(input) as unknown }) })
  }
  return blocks
}

function baseOf({ body }: ScriptedQuestion) {
  return { id: 'msg_scripted', type: 'message', role: 'assistant', model: body['model'] }
}

function stopReason(turn: ScriptedTurn): string | null {
  if (turn.finish_reason !== undefined) return turn.finish_reason
  return turn.calls?.length ? 'tool_use' : 'end_turn'
}

function usageOf(turn: ScriptedTurn, question: ScriptedQuestion): Record<string, unknown> | undefined {
  if (turn.usage === null) return undefined
  const { input, output } = estimateTokens(turn, question)
  return turn.usage ?? { input_tokens: input, output_tokens: output }
}
