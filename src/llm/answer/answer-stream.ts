/** Parses the text of an answer into deltas: knows the framings of answers, and nothing about their meaning. */
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import { EventTooLarge, createSseDecoder } from '../../lib/sse-decoder.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { AnswerAssembly } from './answer-assembly.ts'
import { CutShort, NotAnAnswer, UpstreamFailure, partOf } from './answer-assembly.ts'
import { AnswerTooLarge, MAX_EVENT_CHARS } from './answer-limits.ts'
import type { ChunkReader } from './chunk.ts'
import type { LlmPiece } from '../llm.ts'

/**
 * The part of a response that is not an answer, for the error message to quote. Much longer than the quotation: a
 * secret that is cut off would not be redacted.
 */
const MAX_HEAD_CHARS = 64 * 1024

/** One message of the server: the JSON of a chunk, or the end marker. */
type ServerMessage = { readonly json: unknown; readonly isError: boolean } | 'done'

/**
 * Parses the answer and yields its deltas: at most one for each part of the answer per read. Returns when the answer
 * has ended, which may be before the server closes. An error after the model's end is ignored.
 *
 * One loop from the text to the delta: each further async generator, and each `yield*` in one, would delay every piece
 * of text by some microseconds.
 */
export async function* readAnswer(
  texts: AsyncIterable<string>,
  answer: AnswerAssembly,
  readChunks: ChunkReader,
): AsyncGenerator<LlmPiece, void> {
  const reader = createMessageReader()
  // Text that has already arrived is read without a turn of the event loop; most of a delta's cost is its reader's
  // work.
  const slices = createSlices()
  const take = (messages: readonly ServerMessage[]) => joinDeltas(takeMessages(messages, answer, readChunks))
  try {
    for await (const text of texts) {
      for (const delta of take(reader.push(text))) {
        yield delta
        const turn = slices.rest()
        if (turn) await turn
      }
      if (answer.isOver) break
      // A read may also be long work without a result, such as comments.
      const turn = slices.rest()
      if (turn) await turn
    }
    if (!answer.isOver) for (const delta of take(reader.end())) yield delta
  } catch (error) {
    const isRefused = [UpstreamFailure, AnswerTooLarge, EventTooLarge].some((kind) => error instanceof kind)
    if (!answer.hasEnded || isRefused) throw error
    answer.breakOff()
  }
  // Half a character of an interrupted answer is dropped.
  if (answer.hasEnded) for (const delta of answer.flush()) yield delta
}

function* takeMessages(
  messages: readonly ServerMessage[],
  answer: AnswerAssembly,
  readChunks: ChunkReader,
): Generator<LlmPiece> {
  for (const message of messages) {
    if (message === 'done') return answer.end()
    for (const chunk of readChunks(message.json)) {
      if (chunk.error) throw new UpstreamFailure(chunk.error)
      if (message.isError) throw new UpstreamFailure(message.json)
      yield* answer.add(chunk)
      if (answer.isOver) return
    }
    if (message.isError) throw new UpstreamFailure(message.json)
  }
}

/**
 * Reads events as they arrive; a server that ignores the request to stream sends one JSON document. Gateways also send
 * such a document after events or comments, without a field name, mostly to report an error.
 */
function createMessageReader() {
  const sse = createSseDecoder({ maxEventChars: MAX_EVENT_CHARS })
  let head = ''
  let plain: string | undefined
  let sawMessage = false
  return {
    push(text: string): ServerMessage[] {
      if (head === '' && /^[{[]/.test(text.trimStart())) plain = ''
      if (!sawMessage && head.length < MAX_HEAD_CHARS) head = (head + text).trimStart().slice(0, MAX_HEAD_CHARS)
      if (plain === undefined) {
        const messages = sse.push(text).flatMap(parseMessage)
        sawMessage ||= messages.length > 0
        // Do not read to the end, which such a page may never reach.
        if (!sawMessage && head.length === MAX_HEAD_CHARS && !isEventStream(head)) throw new NotAnAnswer(head)
        return messages
      }
      plain += text
      if (plain.length > MAX_EVENT_CHARS) throw tooLarge()
      return []
    },
    end(): ServerMessage[] {
      if (plain !== undefined) return [...parseMessage({ event: '', data: plain }), 'done']
      const rest = [...sse.rest().flatMap(parseMessage), ...documentIn(sse.strayLines())]
      if (!sawMessage && rest.length === 0 && head !== '' && !isEventStream(head)) throw new NotAnAnswer(head)
      return rest
    },
  }
}

/** A stream may be cut off in its first field. */
const isEventStream = (head: string) =>
  /^(data|event|id|retry)?:/.test(head) || ['data', 'event', 'id', 'retry'].some((field) => field.startsWith(head))

const tooLarge = () => new AnswerTooLarge(`a message of it is longer than ${MAX_EVENT_CHARS} characters`)

/** Returns one message or none: gateways keep a connection alive with events whose data is empty. */
function parseMessage({ event, data }: { event: string; data: string }): ServerMessage[] {
  const text = data.trim()
  const isError = event === 'error'
  if (text === '[DONE]') return ['done']
  if (text === '' && !isError) return []
  try {
    return [{ json: parseUntrustedJson(data), isError }]
  } catch (error) {
    if (error instanceof ComplexJson) throw new AnswerTooLarge(`a message of it ${error.message}`)
    if (isError && !/^[{[]/.test(text)) return [{ json: text, isError }]
    throw new CutShort('the provider sent an incomplete chunk', { cause: error })
  }
}

/** An incomplete document is the rest of one, or a text that is not meant for programs. */
function documentIn(lines: string): ServerMessage[] {
  try {
    return /^\s*[{[]/.test(lines) ? [{ json: parseUntrustedJson(lines), isError: false }] : []
  } catch {
    return []
  }
}

/**
 * Joins deltas to one per part. A server may split an answer into single characters and mix the parts: each delta costs
 * a frame for every reader, much larger than its text.
 */
function* joinDeltas(deltas: Iterable<LlmPiece>): Generator<LlmPiece> {
  const joinedPieces = new Map<string, LlmPiece>()
  try {
    for (const delta of deltas) {
      const part = partOf(delta)
      joinedPieces.set(part, { ...delta, text: (joinedPieces.get(part)?.text ?? '') + delta.text })
    }
  } finally {
    // Text before a failure also counts.
    yield* joinedPieces.values()
  }
}
