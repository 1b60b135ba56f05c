/** Assembles one answer from a model's chunks, and determines whether it is complete. */
import { NO_USAGE } from '../../contract/values/message.ts'
import type { Usage } from '../../contract/values/message.ts'
import { AnswerTooLarge, MAX_ANSWER_CHARS } from './answer-limits.ts'
import { AnswerParts, partsWithExtras } from './answer-parts.ts'
import type { Chunk } from './chunk.ts'
import type { Fields } from './fields.ts'
import { ReasoningDetails } from './reasoning-details.ts'
import { cutReasonOf } from '../../contract/finish-reason.ts'
import type { LlmAnswer, LlmPiece, TakenIds } from '../llm.ts'
import type { ToolCallAssembly } from './tool-call-assembly.ts'
import { createToolCallAssembly } from './tool-call-assembly.ts'

/** The provider reported a failure inside an answer; `error` is its error object. */
export class UpstreamFailure extends Error {
  readonly error: unknown
  constructor(error: unknown) {
    super('the provider reported an error')
    this.error = error
  }
}

/** The stream ended before the model did. */
export class CutShort extends Error {}

/** The response did not come from an endpoint of this API; the message quotes its beginning. */
export class NotAnAnswer extends Error {}

export type AnswerOptions = {
  readonly model: string
  readonly provider?: string
  /** Ids of earlier calls. */
  readonly takenIds: TakenIds
  /** `sent` is the cost that the provider reported, in USD. */
  readonly costOf: (usage: Usage, sent: number | undefined) => number | undefined
}

const NO_CALLS = { calls: [], extras: [], incomplete: 0 }

export class AnswerAssembly {
  readonly #options: AnswerOptions
  /** First halves of surrogate pairs that wait for the second half, by part. */
  readonly #halves = new Map<string, LlmPiece>()
  #text = ''
  #reasoning = ''
  // Each is created when the answer has one.
  #calls: ToolCallAssembly | undefined
  #parts: AnswerParts | undefined
  #details: ReasoningDetails | undefined
  #size = 0
  #stopReason = ''
  #usage: Usage | undefined
  #cost: number | undefined
  #servedModel = ''
  #sawAnswer = false
  #sawOther = false
  #sawEnd = false
  #isBroken = false
  #isOver = false

  constructor(options: AnswerOptions) {
    this.#options = options
  }

  /**
   * Returns the deltas that a chunk adds. A delta never ends inside a character: the first half of a pair waits for the
   * other. Throws `AnswerTooLarge`, and `CutShort` if the answer begins a second time.
   */
  add(chunk: Chunk): LlmPiece[] {
    if (chunk.isStart && this.#hasBegun) throw new CutShort('the answer began again in the middle')
    this.#sawAnswer ||= chunk.isAnswer
    this.#sawOther ||= !chunk.isAnswer
    this.#stopReason = chunk.finishReason || this.#stopReason
    this.#usage = chunk.usage ?? this.#usage
    this.#cost = chunk.costUsd ?? this.#cost
    this.#servedModel = chunk.model || this.#servedModel
    const addition = chunk.block === undefined ? this.#newIn(chunk) : this.#newInBlock(chunk, chunk.block)
    if (chunk.details) this.#addDetails(chunk.details, chunk.extent)
    this.#text += addition.text
    this.#reasoning += addition.reasoning
    const inputs = addition.calls.map((fragment) =>
      (this.#calls ??= createToolCallAssembly(this.#options.takenIds)).add(fragment),
    )
    this.#size +=
      (chunk.proof?.data.length ?? 0) +
      addition.text.length +
      addition.reasoning.length +
      addition.calls.reduce((sum, { extra }) => sum + (extra?.length ?? 0), 0) +
      inputs.reduce((sum, input) => sum + input.text.length, 0)
    // Usage may also come first; it ends the answer only if nothing follows.
    this.#sawEnd = chunk.isLast && this.#size > 0
    if (chunk.isEnd) this.end()
    if (this.#size > MAX_ANSWER_CHARS) throw new AnswerTooLarge(`it is longer than ${MAX_ANSWER_CHARS} characters`)
    return [
      ...(addition.reasoning === '' ? [] : this.#whole({ kind: 'reasoning', text: addition.reasoning })),
      ...(addition.text === '' ? [] : this.#whole({ kind: 'text', text: addition.text })),
      ...inputs.flatMap((input) =>
        this.#whole({ kind: 'tool_input', index: input.call, id: input.id, name: input.name, text: input.text }),
      ),
    ]
  }

  /** The server reported the end of the stream. */
  end(): void {
    this.#sawEnd = true
    this.#isOver = true
  }

  /** True if nothing more is read. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The connection broke, although the answer seemed to have ended. */
  breakOff(): void {
    this.#isBroken = true
  }

  /** What came before another beginning is an answer that broke: its text and calls must not mix with the next ones. */
  get #hasBegun(): boolean {
    return this.#size > 0 || this.#calls !== undefined
  }

  /** Returns the text that still waited for its other half. */
  flush(): LlmPiece[] {
    const halves = [...this.#halves.values()].map((half) => ({ ...half, text: half.text.toWellFormed() }))
    this.#halves.clear()
    return halves
  }

  /** True if the model is known to have finished; later errors do not matter. */
  get hasEnded(): boolean {
    return this.#sawEnd || this.#stopReason !== ''
  }

  /** Throws `CutShort` or `NotAnAnswer` if the answer is not complete. */
  finish(): LlmAnswer {
    const stopReason = this.#stopReason
    if (this.#sawOther && !this.#sawAnswer) throw new NotAnAnswer('')
    // Some vendors send a finish reason with every chunk: if the connection broke, it proves nothing.
    const isCertain = stopReason !== '' && !this.#isBroken && cutReasonOf(stopReason) === undefined
    const { calls, extras, incomplete } = this.#calls?.finish({ isCertain }) ?? NO_CALLS
    const isEmpty = this.#text === '' && calls.length === 0
    const isCut = stopReason === '' ? !this.#sawEnd || incomplete > 0 || isEmpty : this.#isBroken && incomplete > 0
    // OpenRouter's finish reason for a failed upstream provider.
    if (isCut || stopReason === 'error') throw new CutShort('the answer ended before the model did')
    const answer = this.#answerWith(this.#text, calls)
    const details = this.#details?.finish(this.#calls?.finalIds())
    let parts = this.#parts?.finish()
    if (!this.#parts && (this.#calls || details !== undefined)) parts = partsWithExtras(answer, { extras, details })
    return { ...answer, ...(parts && { parts }) }
  }

  /** Returns everything parsed so far, for the log: joined, so that a secret that was split over chunks is found. */
  soFar(): object {
    return {
      model: this.#servedModel || this.#options.model,
      ...(this.#reasoning && { reasoning: this.#reasoning }),
      text: this.#text,
      tool_calls: (this.#calls?.calls ?? []).map((call) => ({ id: call.id, name: call.name, arguments: call.text })),
      finish_reason: this.#stopReason,
      usage: this.#usage,
    }
  }

  /** Returns the text of an answer that never finished; undefined if there is none. It has no calls. */
  partial(): LlmAnswer | undefined {
    const wholeText = this.#text.slice(0, this.#text.length - (this.#halves.get('text')?.text.length ?? 0))
    return wholeText.trim() === '' ? undefined : this.#answerWith(wholeText, [])
  }

  /** A message repeats what its pieces had. */
  #addDetails(details: readonly Fields[], extent: Chunk['extent']): void {
    if (this.#details && extent !== 'piece') return
    this.#details ??= new ReasoningDetails()
    this.#details.add(details)
    this.#size += JSON.stringify(details).length
  }

  /** Returns what the chunk adds. Its `message` may repeat earlier text; only the text beyond that counts. */
  #newIn(chunk: Chunk): Pick<Chunk, 'text' | 'reasoning' | 'calls'> {
    if (chunk.extent === 'piece') return chunk
    const rest = (writtenText: string, whole: string) => {
      if (whole.startsWith(writtenText)) return whole.slice(writtenText.length)
      return chunk.extent === 'message' ? whole : ''
    }
    return {
      text: rest(this.#text, chunk.text),
      reasoning: rest(this.#reasoning, chunk.reasoning),
      calls: this.#calls ? [] : chunk.calls,
    }
  }

  /** Returns what the chunk adds: between two blocks of reasoning there is an empty line. */
  #newInBlock(
    { text, reasoning, calls, proof, phase }: Chunk,
    block: string,
  ): Pick<Chunk, 'text' | 'reasoning' | 'calls'> {
    this.#parts ??= new AnswerParts()
    const callsBefore = this.#calls?.calls.length ?? 0
    const begins = this.#parts.add({ block, text, reasoning, proof, phase, callsBefore })
    return { text, reasoning: begins && this.#reasoning !== '' ? `\n\n${reasoning}` : reasoning, calls }
  }

  #answerWith(text: string, toolCalls: LlmAnswer['toolCalls']): LlmAnswer {
    const { model, provider, costOf } = this.#options
    return {
      text: text.toWellFormed(),
      reasoning: this.#reasoning.toWellFormed(),
      toolCalls,
      usage: this.#usage ?? NO_USAGE,
      costUsd: this.#usage && costOf(this.#usage, this.#cost),
      stopReason: this.#stopReason || 'unknown',
      model: this.#servedModel || model,
      ...(provider !== undefined && { provider }),
    }
  }

  #whole(delta: LlmPiece): LlmPiece[] {
    const part = partOf(delta)
    const all = (this.#halves.get(part)?.text ?? '') + delta.text
    const end = isHighSurrogate(all.charCodeAt(all.length - 1)) ? all.length - 1 : all.length
    if (end < all.length) this.#halves.set(part, { ...delta, text: all.slice(end) })
    else this.#halves.delete(part)
    return end > 0 ? [{ ...delta, text: all.slice(0, end).toWellFormed() }] : []
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

/**
 * Returns the part of the answer that a piece belongs to. Pieces of one part arrive in order; the order between parts
 * has no meaning.
 */
export function partOf(piece: LlmPiece): string {
  return piece.kind === 'tool_input' ? `${piece.kind} ${piece.index}` : piece.kind
}
