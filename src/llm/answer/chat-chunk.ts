/** Parses one chunk of a Chat Completions stream, whichever vendor's fields it uses. Nothing here throws. */
import { MAX_TOKENS } from '../../contract/message.ts'
import type { Usage } from '../../contract/message.ts'
import { MAX_WORD_CHARS } from './answer-limits.ts'
import type { CallFragment } from './tool-call-assembly.ts'

export type Chunk = {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly CallFragment[]
  /**
   * Whether the text is a piece of the answer, the answer so far (a `message` with an empty `delta`), or the whole text
   * of the chunk (a `message` alone).
   */
  readonly extent: 'piece' | 'so_far' | 'message'
  /** '' while the model continues. */
  readonly finishReason: string
  readonly usage: Usage | undefined
  readonly model: string
  /** The provider failed during the stream; its error object. */
  readonly error: unknown
  /** True if this is a chunk of an answer at all. */
  readonly isAnswer: boolean
  /** True for the usage chunk after the last choice, as `include_usage` requests it. */
  readonly isLast: boolean
}

type Fields = Readonly<Record<string, unknown>>

/** Parses a chunk, or a whole answer: a server that does not stream sends `message` instead of `delta`. */
export function readChunk(json: unknown): Chunk {
  const chunk = fields(json)
  const choices = list(chunk['choices'])
  const choice = fields(choices.find((each) => (fields(each)['index'] ?? 0) === 0))
  const groq = fields(chunk['x_groq'])
  return {
    ...readChoice(choice),
    finishReason: string(choice['finish_reason']).slice(0, MAX_WORD_CHARS),
    // Groq's own field is the only usage in its streams if none was requested.
    usage: readUsage(chunk['usage'] ?? choice['usage'] ?? groq['usage']),
    model: string(chunk['model']).slice(0, MAX_WORD_CHARS),
    error: errorIn(json) ?? groq['error'],
    isAnswer: Array.isArray(chunk['choices']) || isObject(chunk['usage']),
    isLast: choices.length === 0 && isObject(chunk['usage']),
  }
}

type Words = Pick<Chunk, 'text' | 'reasoning' | 'calls'>

/** Perplexity sends both in each chunk; gateways in front of servers that do not stream fill `message` alone. */
function readChoice({ delta, message }: Fields): Words & Pick<Chunk, 'extent'> {
  const piece = readWords(fields(delta), () => undefined)
  const isSilent = piece.text === '' && piece.reasoning === '' && piece.calls.length === 0
  if (!isSilent || !isObject(message)) return { ...piece, extent: 'piece' }
  return { ...readWords(message, (place) => place), extent: isObject(delta) ? 'so_far' : 'message' }
}

function readWords(words: Fields, indexAt: (place: number) => number | undefined): Words {
  const content = readContent(words['content'])
  return {
    text: content.text + string(words['refusal']),
    // DeepSeek and vLLM use `reasoning_content`, OpenRouter and Ollama `reasoning`; some send both, with the same text.
    reasoning: string(words['reasoning_content']) || string(words['reasoning']) || content.reasoning,
    calls: list(words['tool_calls']).map((call, place) => readCall(call, indexAt(place))),
  }
}

/**
 * Returns the error of a document, which may be inside a list, or be the error itself: Gemini, FastAPI and older vLLM
 * send these.
 */
function errorIn(json: unknown): unknown {
  const body = fields(Array.isArray(json) ? json[0] : json)
  if (body['error']) return body['error']
  const isError = Boolean(body['detail']) || body['object'] === 'error' || body['type'] === 'error'
  return isError && !Array.isArray(body['choices']) ? body : undefined
}

/** Mistral's reasoning models send parts instead of a string. */
function readContent(content: unknown): { text: string; reasoning: string } {
  if (!Array.isArray(content)) return { text: string(content), reasoning: '' }
  const parts = content.map(fields)
  const textOf = (part: Fields): string =>
    string(part['text']) + list(part['thinking']).map(fields).map(textOf).join('')
  return {
    text: parts
      .filter((part) => part['type'] !== 'thinking')
      .map(textOf)
      .join(''),
    reasoning: parts
      .filter((part) => part['type'] === 'thinking')
      .map(textOf)
      .join(''),
  }
}

function readCall(value: unknown, place: number | undefined): CallFragment {
  const call = fields(value)
  const named = fields(call['function'])
  return {
    index: typeof call['index'] === 'number' ? call['index'] : place,
    id: string(call['id']),
    name: string(named['name']),
    arguments: named['arguments'],
  }
}

function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined
  const usage = fields(value)
  const input = count(usage['prompt_tokens'])
  const reasoning = count(fields(usage['completion_tokens_details'])['reasoning_tokens'])
  const cached = fields(usage['prompt_tokens_details'])['cached_tokens'] ?? usage['prompt_cache_hit_tokens']
  // xAI and Gemini exclude reasoning from `completion_tokens`, but not from the total.
  const output = Math.max(count(usage['completion_tokens']), count(usage['total_tokens']) - input)
  return {
    input_tokens: input,
    output_tokens: output,
    cached_tokens: Math.min(count(cached), input),
    reasoning_tokens: Math.min(reasoning, output),
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fields(value: unknown): Fields {
  return isObject(value) ? value : {}
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Ignores a number that no model reaches. */
function count(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MAX_TOKENS ? Math.trunc(value) : 0
}
