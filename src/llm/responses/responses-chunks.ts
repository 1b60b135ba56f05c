/** Parses the events of an answer of OpenAI's Responses API. Nothing here throws, whatever a server sends. */
import type { Phase, Usage } from '../../contract/values/message.ts'
import { Phase as PhaseSchema } from '../../contract/values/message.ts'
import { MAX_WORD_CHARS } from '../answer/answer-limits.ts'
import type { Chunk, ChunkReader } from '../answer/chunk.ts'
import { NOTHING } from '../answer/chunk.ts'
import type { Fields } from '../answer/fields.ts'
import { count, fields, isObject, list, string } from '../answer/fields.ts'
import type { NumberedBlock } from '../answer/open-blocks.ts'
import { OpenBlocks } from '../answer/open-blocks.ts'

/** The type in the event's JSON decides: the name of the server-sent event repeats it, or is wrong. */
export function createResponsesReader(): ChunkReader {
  const reader = new ResponsesReader()
  return (json) => reader.read(fields(json))
}

type Item = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'other'
  readonly phase: Phase | undefined
  /** The block of the last piece; '' if there was none, so that the end of the item has all of it. */
  block: string
}
type OpenItem = NumberedBlock<Item>

class ResponsesReader {
  readonly #items = new OpenBlocks<Item>()

  read(event: Fields): readonly Chunk[] {
    const index = indexOf(event['output_index'])
    switch (event['type']) {
      case 'response.output_item.added':
        return this.#begin(index, fields(event['item']))
      case 'response.output_item.done':
        return this.#end(index, fields(event['item']))
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return this.#piece(index, 'text', string(event['delta']))
      case 'response.reasoning_summary_text.delta':
        return this.#piece(index, 'reasoning', string(event['delta']), indexOf(event['summary_index']))
      case 'response.reasoning_text.delta':
        return this.#piece(index, 'reasoning', string(event['delta']), indexOf(event['content_index']))
      case 'response.function_call_arguments.delta':
        return this.#piece(index, 'call', string(event['delta']))
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.#finish(fields(event['response']))
      default:
        return this.#other(event)
    }
  }

  /** Progress and repetitions, a whole document, an error, or an event of a later version. */
  #other(event: Fields): readonly Chunk[] {
    const { type, error, detail, message, code, object } = event
    if (object === 'response') return this.#finish(event)
    if (type === 'error') return [failure(error ?? { message, code })]
    if (error || detail) return [failure(error || detail)]
    const isKnown = string(type).startsWith('response.')
    const isStart = type === 'response.created'
    return [{ ...NOTHING, isAnswer: isKnown, isStart, model: modelOf(fields(event['response'])) }]
  }

  #begin(index: number, item: Fields): readonly Chunk[] {
    const phase = PhaseSchema.safeParse(item['phase']).data
    const open = this.#items.begin(index, { kind: KINDS.get(item['type']) ?? 'other', phase, block: '' })
    if (open.kind !== 'call') return [NOTHING]
    return [{ ...NOTHING, calls: [fragmentOf(open, '', item)] }]
  }

  /** A piece that does not fit its item is ignored. */
  #piece(index: number, kind: Item['kind'], text: string, part = 0): readonly Chunk[] {
    const open = this.#items.at(index)
    if (open?.kind !== kind || text === '') return [NOTHING]
    open.block = `${open.number} ${part}`
    return [this.#chunkOf(open, text)]
  }

  #chunkOf(open: OpenItem, text: string): Chunk {
    if (open.kind === 'call') return { ...NOTHING, calls: [fragmentOf(open, text)] }
    const piece = open.kind === 'text' ? { text } : { reasoning: text }
    return { ...NOTHING, ...piece, block: open.block, ...(open.phase && { phase: open.phase }) }
  }

  /** The end of an item repeats all of it, and only there its reasoning is encrypted as a whole. */
  #end(index: number, item: Fields): readonly Chunk[] {
    const beginning = this.#items.at(index) ? [] : this.#begin(index, item)
    const open = this.#items.end(index)
    if (!open || KINDS.get(item['type']) !== open.kind) return [...beginning, NOTHING]
    const missedTexts = open.block === '' ? textsOf(item, open.kind) : []
    const pieces = missedTexts.map((text, part) => {
      open.block = `${open.number} ${part}`
      return this.#chunkOf(open, text)
    })
    return [...beginning, ...pieces, ...proofOf(open, item)]
  }

  #finish(response: Fields): readonly Chunk[] {
    const { status, incomplete_details, error } = response
    if (isObject(error) || status === 'failed' || status === 'cancelled')
      return [failure(isObject(error) ? error : { message: `The response is ${String(status)}.` })]
    // Some gateways send the items only here.
    const items = this.#items.isEmpty ? list(response['output']).map(fields) : []
    const reason = string(fields(incomplete_details)['reason']) || string(status) || 'completed'
    return [
      ...items.flatMap((item, at) => this.#end(at, item)),
      {
        ...NOTHING,
        model: modelOf(response),
        usage: readUsage(response['usage']),
        finishReason: reason.slice(0, MAX_WORD_CHARS),
      },
      { ...NOTHING, isEnd: true },
    ]
  }
}

const KINDS = new Map<unknown, Item['kind']>([
  ['message', 'text'],
  ['reasoning', 'reasoning'],
  ['function_call', 'call'],
])

function fragmentOf({ number: index }: OpenItem, text: string, item: Fields = {}) {
  return { index, id: string(item['call_id']), name: string(item['name']), arguments: text }
}

/** Returns the texts of a whole item. */
function textsOf(item: Fields, kind: Item['kind']): string[] {
  if (kind === 'call') return [string(item['arguments'])]
  const summary = list(item['summary'])
  const parts = (summary.length > 0 ? summary : list(item['content'])).map(fields)
  const texts = parts.map((part) => string(part['text']) + string(part['refusal']))
  return kind === 'text' ? [texts.join('')] : texts
}

function proofOf({ kind, number, block }: OpenItem, { id, encrypted_content: data }: Fields): readonly Chunk[] {
  if (kind !== 'reasoning' || typeof data !== 'string' || data === '') return []
  const proof = {
    provider: 'openai_responses',
    kind: 'encrypted',
    data,
    ...(typeof id === 'string' && { id }),
  } as const
  return [{ ...NOTHING, block: block || `${number} 0`, proof }]
}

const failure = (error: unknown): Chunk => ({ ...NOTHING, error })

const indexOf = (value: unknown) => (typeof value === 'number' ? value : 0)

const modelOf = (response: Fields) => string(response['model']).slice(0, MAX_WORD_CHARS)

function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined
  const input = count(value['input_tokens'])
  const output = count(value['output_tokens'])
  const details = fields(value['input_tokens_details'])
  const writtenTokens = Math.min(count(details['cache_write_tokens']), input)
  return {
    input_tokens: input,
    output_tokens: output,
    cached_tokens: Math.min(count(details['cached_tokens']), input),
    ...(writtenTokens > 0 && { cache_write_tokens: writtenTokens }),
    reasoning_tokens: Math.min(count(fields(value['output_tokens_details'])['reasoning_tokens']), output),
  }
}
