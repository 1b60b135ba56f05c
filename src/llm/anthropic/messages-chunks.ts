/** Parses the events of an answer of Anthropic's Messages API. Nothing here throws, whatever a server sends. */
import type { Usage } from '../../contract/values/message.ts'
import { MAX_WORD_CHARS } from '../answer/answer-limits.ts'
import type { Chunk, ChunkReader } from '../answer/chunk.ts'
import { NOTHING } from '../answer/chunk.ts'
import type { Fields } from '../answer/fields.ts'
import type { NumberedBlock } from '../answer/open-blocks.ts'
import { OpenBlocks } from '../answer/open-blocks.ts'
import { count, fields, isObject, list, string } from '../answer/fields.ts'

/** The type in the event's JSON decides: the name of the server-sent event repeats it, or is wrong. */
export function createMessagesReader(): ChunkReader {
  const reader = new MessagesReader()
  return (json) => reader.read(fields(json))
}

type Block = {
  readonly kind: 'text' | 'thinking' | 'tool_use' | 'other'
  /** The arguments in the start of the block: some gateways send them there, and no pieces. */
  input?: string
}
type OpenBlock = NumberedBlock<Block>

class MessagesReader {
  /** Later usage replaces earlier usage field by field: the end of a stream may repeat only some. */
  #usage: Fields = {}
  readonly #open = new OpenBlocks<Block>()

  read(event: Fields): readonly Chunk[] {
    switch (event['type']) {
      case 'message_start':
        return [this.#begin(fields(event['message']))]
      case 'content_block_start':
        return this.#start(indexOf(event), fields(event['content_block']))
      case 'content_block_delta':
        return [this.#delta(indexOf(event), fields(event['delta']))]
      case 'content_block_stop':
        return this.#stop(indexOf(event))
      case 'message_delta':
        return [this.#change(fields(event['delta']), event['usage'])]
      case 'message_stop':
        return [{ ...NOTHING, isEnd: true }]
      case 'message':
        return this.#document(event)
      case 'ping':
        return [NOTHING]
      default:
        // An API may get new events; the rest of a stream shows whether it is an answer.
        return [{ ...NOTHING, isAnswer: false, error: errorIn(event) }]
    }
  }

  #begin(message: Fields): Chunk {
    return {
      ...this.#change({}, message['usage']),
      isStart: true,
      model: string(message['model']).slice(0, MAX_WORD_CHARS),
    }
  }

  #change({ stop_reason }: Fields, usage: unknown): Chunk {
    if (isObject(usage)) this.#usage = { ...this.#usage, ...definedIn(usage) }
    return {
      ...NOTHING,
      finishReason: string(stop_reason).slice(0, MAX_WORD_CHARS),
      usage: isObject(usage) ? readUsage(this.#usage) : undefined,
    }
  }

  #start(index: number, block: Fields): readonly Chunk[] {
    const { type, input } = block
    const kind = type === 'redacted_thinking' ? 'thinking' : OPEN_KINDS.find((each) => each === type)
    const open = this.#open.begin(index, { kind: kind ?? 'other' })
    if (type === 'text') return [inBlock(open, { text: string(block['text']) })]
    if (type === 'thinking')
      return [inBlock(open, { reasoning: string(block['thinking']) }, string(block['signature']))]
    if (type === 'redacted_thinking') return [{ ...inBlock(open, {}), ...proofOf('encrypted', string(block['data'])) }]
    // Blocks of tools that the provider itself runs, and of later versions, add nothing.
    if (type !== 'tool_use') return [NOTHING]
    if (isObject(input) && Object.keys(input).length > 0) open.input = JSON.stringify(input)
    return [callChunk(open, '', string(block['id']), string(block['name']))]
  }

  /** A piece that does not fit its block is ignored; one without a block begins it. */
  #delta(index: number, delta: Fields): Chunk {
    const { type } = delta
    const kind = type === 'text_delta' ? 'text' : type === 'thinking_delta' ? 'thinking' : undefined
    const open = this.#open.at(index) ?? (kind && this.#open.begin(index, { kind }))
    if (type === 'text_delta' && open?.kind === 'text') return inBlock(open, { text: string(delta['text']) })
    if (open?.kind === 'thinking') {
      if (type === 'thinking_delta') return inBlock(open, { reasoning: string(delta['thinking']) })
      if (type === 'signature_delta') return inBlock(open, {}, string(delta['signature']))
    }
    if (type !== 'input_json_delta' || open?.kind !== 'tool_use') return NOTHING
    const piece = string(delta['partial_json'])
    if (piece !== '') delete open.input
    return callChunk(open, piece)
  }

  #stop(index: number): readonly Chunk[] {
    const open = this.#open.end(index)
    return open?.input === undefined ? [] : [callChunk(open, open.input)]
  }

  /** A server that does not stream sends the whole message. */
  #document(message: Fields): readonly Chunk[] {
    const blocks = list(message['content']).map(fields)
    return [
      this.#begin(message),
      ...blocks.flatMap((block, at) => [...this.#start(at, block), ...this.#stop(at)]),
      this.#change(message, undefined),
      { ...NOTHING, isEnd: true },
    ]
  }
}

const OPEN_KINDS = ['text', 'thinking', 'tool_use'] as const

function inBlock({ number }: OpenBlock, piece: { text?: string; reasoning?: string }, signature = ''): Chunk {
  return { ...NOTHING, ...piece, block: `${number}`, ...proofOf('signature', signature) }
}

function proofOf(kind: 'signature' | 'encrypted', data: string): Pick<Chunk, 'proof'> {
  return data === '' ? {} : { proof: { provider: 'anthropic', kind, data } }
}

function callChunk({ number: index }: OpenBlock, text: string, id = '', name = ''): Chunk {
  return { ...NOTHING, calls: [{ index, id, name, arguments: text }] }
}

const indexOf = ({ index }: Fields) => (typeof index === 'number' ? index : 0)

function errorIn({ error, type, detail }: Fields): unknown {
  return error || detail || type === 'error' ? (error ?? detail ?? type) : undefined
}

const definedIn = (record: Fields): Fields =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined))

/** The input tokens of the API are those that the cache was neither read nor written for. */
function readUsage(usage: Fields): Usage {
  const cachedTokens = count(usage['cache_read_input_tokens'])
  const writtenTokens = count(usage['cache_creation_input_tokens'])
  const output = count(usage['output_tokens'])
  const thinking = count(fields(usage['output_tokens_details'])['thinking_tokens'])
  return {
    input_tokens: count(usage['input_tokens']) + cachedTokens + writtenTokens,
    output_tokens: output,
    cached_tokens: cachedTokens,
    ...(writtenTokens > 0 && { cache_write_tokens: writtenTokens }),
    reasoning_tokens: Math.min(thinking, output),
  }
}
