/** Parses one chunk of a Chat Completions stream, whichever vendor's fields it uses. Nothing here throws. */
import type { Usage } from '../../contract/values/message.ts'
import { MAX_WORD_CHARS } from '../answer/answer-limits.ts'
import type { Chunk } from '../answer/chunk.ts'
import type { Fields } from '../answer/fields.ts'
import { cost, count, fields, isObject, list, string } from '../answer/fields.ts'
import type { CallFragment } from '../answer/tool-call-assembly.ts'

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
    costUsd: readCost(fields(chunk['usage'])),
    model: string(chunk['model']).slice(0, MAX_WORD_CHARS),
    // OpenRouter reports the failure of the model behind it in the choice.
    error: errorIn(json) ?? groq['error'] ?? (choice['error'] || undefined),
    isAnswer: Array.isArray(chunk['choices']) || isObject(chunk['usage']),
    isLast: choices.length === 0 && isObject(chunk['usage']),
  }
}

type Words = Pick<Chunk, 'text' | 'reasoning' | 'calls' | 'details'>

/** Perplexity sends both in each chunk; gateways in front of servers that do not stream fill `message` alone. */
function readChoice({ delta, message }: Fields): Words & Pick<Chunk, 'extent'> {
  const piece = readWords(fields(delta), () => undefined)
  const isSilent = piece.text === '' && piece.reasoning === '' && piece.calls.length === 0 && !piece.details
  if (!isSilent || !isObject(message)) return { ...piece, extent: 'piece' }
  return { ...readWords(message, (place) => place), extent: isObject(delta) ? 'so_far' : 'message' }
}

function readWords(words: Fields, indexAt: (place: number) => number | undefined): Words {
  const content = readContent(words['content'])
  const details = list(words['reasoning_details']).filter(isObject)
  return {
    ...(details.length > 0 && { details }),
    text: content.text + string(words['refusal']),
    // DeepSeek and vLLM use `reasoning_content`, OpenRouter and Ollama `reasoning`; some send both, with the same text.
    reasoning: string(words['reasoning_content']) || string(words['reasoning']) || content.reasoning,
    calls: list(words['tool_calls']).map((call, place) => readCall(call, indexAt(place))),
  }
}

/**
 * Returns the error of a document, which may be inside a list, a list itself, or be the error itself: Gemini, Cloudflare,
 * FastAPI, older vLLM, and gateways such as Kong send these.
 */
function errorIn(json: unknown): unknown {
  const body = fields(Array.isArray(json) ? json[0] : json)
  if (body['error']) return body['error']
  if (list(body['errors']).length > 0 && !Array.isArray(body['choices'])) return body['errors']
  // The message is an object in Ollama's own API, and part of an answer.
  const hasErrorText = Boolean(body['detail']) || string(body['message']) !== ''
  const isError = hasErrorText || body['object'] === 'error' || body['type'] === 'error'
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
  const namedFields = fields(call['function'])
  return {
    index: typeof call['index'] === 'number' ? call['index'] : place,
    id: string(call['id']),
    name: string(namedFields['name']),
    arguments: namedFields['arguments'],
    extra: extraOf(call),
  }
}

/** Gemini refuses calls without the signature that it sent with them. */
function extraOf({ extra_content: extra }: Fields): string | undefined {
  const json = isObject(extra) ? JSON.stringify(extra) : ''
  return json === '' || json.length > MAX_EXTRA_CHARS ? undefined : json
}

/** Signatures have a few kilobytes. */
const MAX_EXTRA_CHARS = 256 * 1024

/** OpenRouter's fields. With a key of one's own for the vendor (`is_byok`), the vendor's bill is not in `cost`. */
function readCost(usage: Fields): number | undefined {
  const chargedCost = cost(usage['cost'])
  if (chargedCost === undefined || usage['is_byok'] !== true) return chargedCost
  const upstream = cost(fields(usage['cost_details'])['upstream_inference_cost'])
  return upstream === undefined ? undefined : cost(chargedCost + upstream)
}

function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined
  const usage = fields(value)
  const input = count(usage['prompt_tokens'])
  const reasoning = count(fields(usage['completion_tokens_details'])['reasoning_tokens'])
  const cachedTokens = fields(usage['prompt_tokens_details'])['cached_tokens'] ?? usage['prompt_cache_hit_tokens']
  // xAI and Gemini exclude reasoning from `completion_tokens`, but not from the total.
  const output = Math.max(count(usage['completion_tokens']), count(usage['total_tokens']) - input)
  return {
    input_tokens: input,
    output_tokens: output,
    cached_tokens: Math.min(count(cachedTokens), input),
    reasoning_tokens: Math.min(reasoning, output),
  }
}
