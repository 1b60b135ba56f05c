/**
 * Sends a scripted turn as OpenAI's Responses API would, with encrypted reasoning, and refuses what that API refuses:
 * reasoning of another place, and tool calls without results.
 */
import { createHash } from 'node:crypto'
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from './script.ts'
import { callsIn, estimateTokens, piecesOf, wordsIn } from './scripted-api.ts'
import type { ScriptedApi } from './scripted-api.ts'

export const RESPONSES: ScriptedApi = {
  path: '/responses',
  messagesOf: (body) => messagesIn(itemsOf(body['input'])),
  faultIn(body) {
    const message = findFault(body['store'], itemsOf(body['input']))
    return message === undefined ? undefined : { type: 'invalid_request_error', message }
  },
  chunksOf,
  wholeAnswer: (turn, question) => responseOf(turn, question, finalStatus(turn)),
  errorBody: (error) => ({ error }),
}

type Item = { readonly type: string; readonly [key: string]: unknown }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests come from our own client and from tests
const itemsOf = (input: unknown) => (Array.isArray(input) ? (input as Item[]) : [])

/** The items of one answer are one message. */
function messagesIn(items: readonly Item[]): ScriptedMessage[] {
  const messages: ScriptedMessage[] = []
  for (const { type, role, content, output } of items) {
    if (type === 'function_call_output') messages.push({ role: 'tool', content: output })
    else if (role === 'user') messages.push({ role, content })
    else if (messages.at(-1)?.role !== 'assistant') messages.push({ role: 'assistant' })
  }
  return messages
}

function findFault(store: unknown, items: readonly Item[]): string | undefined {
  if (store !== false) return 'Items are not found: this server stores nothing.'
  for (const [at, { type, id, call_id, encrypted_content, summary }] of items.entries()) {
    const next = items[at + 1]
    if (type === 'reasoning' && (!next || next['role'] === 'user' || next.type === 'function_call_output'))
      return `Item '${String(id)}' of type 'reasoning' was provided without its required following item.`
    if (type === 'reasoning' && encrypted_content !== encrypt(JSON.stringify(summary)))
      return 'The encrypted content could not be verified.'
    const isAnswered = items.some((item) => item.type === 'function_call_output' && item['call_id'] === call_id)
    if (type === 'function_call' && !isAnswered) return `No tool output found for function call ${String(call_id)}.`
  }
  return undefined
}

const encrypt = (text: string) => `scripted-${createHash('sha256').update(text).digest('base64')}`

function* chunksOf(turn: ScriptedTurn, question: ScriptedQuestion): Generator<string> {
  let sequence_number = 0
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...more })}\n\n`
  yield event('response.created', { response: responseOf({ ...turn, usage: null }, question, 'in_progress') })
  for (const [output_index, { item, deltas }] of scriptedItems(turn, question).entries()) {
    yield event('response.output_item.added', { output_index, item: { ...item, ...EMPTY[item.type] } })
    for (const { type, ...delta } of deltas) yield event(type, { output_index, item_id: item['id'], ...delta })
    yield event('response.output_item.done', { output_index, item })
  }
  if (turn.error !== undefined)
    return yield event('response.failed', { response: { ...responseOf(turn, question, 'failed'), error: turn.error } })
  const status = finalStatus(turn)
  yield event(`response.${status}`, { response: responseOf(turn, question, status) })
}

/** What an item does not have yet when it begins. */
const EMPTY: Readonly<Record<string, object>> = {
  reasoning: { summary: [], encrypted_content: '' },
  message: { content: [] },
  function_call: { arguments: '' },
}

type ScriptedItem = {
  readonly item: Item
  readonly deltas: readonly { readonly type: string; readonly [key: string]: unknown }[]
}

function scriptedItems(turn: ScriptedTurn, question: ScriptedQuestion): ScriptedItem[] {
  const answers = question.messages.filter(({ role }) => role === 'assistant').length
  const { reasoning, text } = turn
  const items: ScriptedItem[] = []
  if (reasoning !== undefined) {
    const summary = [{ type: 'summary_text', text: reasoning }]
    const deltas = wordsIn(reasoning).map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      summary_index: 0,
      delta,
    }))
    const encrypted_content = encrypt(JSON.stringify(summary))
    items.push({ item: { type: 'reasoning', id: `rs_${answers}`, summary, encrypted_content }, deltas })
  }
  if (text !== undefined) {
    const deltas = wordsIn(text).map((delta) => ({ type: 'response.output_text.delta', content_index: 0, delta }))
    const content = [{ type: 'output_text', text, annotations: [] }]
    items.push({ item: { type: 'message', id: `msg_${answers}`, role: 'assistant', content }, deltas })
  }
  for (const { id, name, arguments: input } of callsIn(turn, question)) {
    const deltas = piecesOf(input).map((delta) => ({ type: 'response.function_call_arguments.delta', delta }))
    items.push({ item: { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: input }, deltas })
  }
  return items
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed'

/** A scripted finish reason is that of an incomplete answer. */
const finalStatus = ({ finish_reason: reason }: ScriptedTurn): Status => (reason ? 'incomplete' : 'completed')

function responseOf(turn: ScriptedTurn, question: ScriptedQuestion, status: Status): object {
  const isOver = status === 'completed' || status === 'incomplete'
  return {
    id: 'resp_scripted',
    object: 'response',
    model: question.body['model'],
    status,
    incomplete_details: status === 'incomplete' ? { reason: turn.finish_reason } : null,
    error: null,
    output: isOver ? scriptedItems(turn, question).map(({ item }) => item) : [],
    usage: turn.usage === null ? null : (turn.usage ?? estimateUsage(turn, question)),
  }
}

function estimateUsage(turn: ScriptedTurn, question: ScriptedQuestion): object {
  const { input: input_tokens, output: output_tokens } = estimateTokens(turn, question)
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
}
