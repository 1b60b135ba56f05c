/** Makes one answer of a model's chunks, and says whether it is all the model had to say. */
import { NO_USAGE } from '../../contract/message.ts'
import type { Usage } from '../../contract/message.ts'
import { AnswerTooLarge, MAX_ANSWER_CHARS } from './answer-limits.ts'
import type { Chunk } from './chat-chunk.ts'
import { cutReasonOf } from './finish-reason.ts'
import { partOf } from '../llm.ts'
import type { LlmAnswer, LlmPiece } from '../llm.ts'
import type { ToolCallAssembly } from './tool-call-assembly.ts'
import { createToolCallAssembly } from './tool-call-assembly.ts'

/** The provider reported a failure inside an answer; `error` is what it said. */
export class UpstreamFailure extends Error {
  readonly error: unknown
  constructor(error: unknown) {
    super('the provider reported an error')
    this.error = error
  }
}

/** The answer ended before the model did. */
export class CutShort extends Error {}

/** What answered is no Chat Completions endpoint; the message is how its answer began. */
export class NotAnAnswer extends Error {}

export type AnswerOptions = {
  readonly model: string
  /** Ids of earlier calls. Some vendors count from `call_0` in every answer; a conversation needs each id once. */
  readonly takenIds: ReadonlySet<string>
  readonly costOf: (usage: Usage) => number | undefined
}

export class AnswerAssembly {
  readonly #options: AnswerOptions
  readonly #calls: ToolCallAssembly
  /** Halves of characters that wait for the other half; by part. */
  readonly #halves = new Map<string, LlmPiece>()
  #text = ''
  #reasoning = ''
  #size = 0
  #stopReason = ''
  #usage: Usage | undefined
  #servedModel = ''
  #sawAnswer = false
  #sawOther = false
  #sawEnd = false
  #isBroken = false

  constructor(options: AnswerOptions) {
    this.#options = options
    this.#calls = createToolCallAssembly(options.takenIds)
  }

  /** The deltas a chunk adds. One never ends inside a character: the half of a pair waits for the other. Throws `AnswerTooLarge`. */
  add(chunk: Chunk): LlmPiece[] {
    this.#sawAnswer ||= chunk.isAnswer
    this.#sawOther ||= !chunk.isAnswer
    this.#stopReason = chunk.finishReason || this.#stopReason
    this.#usage = chunk.usage ?? this.#usage
    this.#servedModel = chunk.model || this.#servedModel
    const added = this.#newIn(chunk)
    this.#text += added.text
    this.#reasoning += added.reasoning
    const inputs = added.calls.map((fragment) => this.#calls.add(fragment))
    this.#size += added.text.length + added.reasoning.length + inputs.reduce((sum, input) => sum + input.text.length, 0)
    // Usage may also come first; it is the end only when nothing follows.
    this.#sawEnd = chunk.isLast && this.#size > 0
    if (this.#size > MAX_ANSWER_CHARS) throw new AnswerTooLarge(`it is longer than ${MAX_ANSWER_CHARS} characters`)
    return [
      ...this.#whole({ kind: 'reasoning', text: added.reasoning }),
      ...this.#whole({ kind: 'text', text: added.text }),
      ...inputs.flatMap((input) =>
        this.#whole({ kind: 'tool_input', index: input.call, id: input.id, name: input.name, text: input.text }),
      ),
    ]
  }

  /** The server said that there is no more. */
  end(): void {
    this.#sawEnd = true
  }

  /** The connection broke, though the answer seemed to have ended. */
  breakOff(): void {
    this.#isBroken = true
  }

  /** What still waited for its other half. */
  flush(): LlmPiece[] {
    const left = [...this.#halves.values()].map((half) => ({ ...half, text: half.text.toWellFormed() }))
    this.#halves.clear()
    return left
  }

  /** Whether the model is known to have come to its end; what breaks after that costs nothing. */
  get hasEnded(): boolean {
    return this.#sawEnd || this.#stopReason !== ''
  }

  /** Throws `CutShort` or `NotAnAnswer` when this is not an answer in full. */
  finish(): LlmAnswer {
    const stopReason = this.#stopReason
    if (this.#sawOther && !this.#sawAnswer) throw new NotAnAnswer('')
    // Some vendors give a finish reason with every chunk: where the connection broke it proves nothing.
    const isCertain = stopReason !== '' && !this.#isBroken && cutReasonOf(stopReason) === undefined
    const { calls, incomplete } = this.#calls.finish({ isCertain })
    const isEmpty = this.#text === '' && calls.length === 0
    const isCut = stopReason === '' ? !this.#sawEnd || incomplete > 0 || isEmpty : this.#isBroken && incomplete > 0
    // OpenRouter's finish reason for a provider that failed behind it.
    if (isCut || stopReason === 'error') throw new CutShort('the answer ended before the model did')
    return this.#answerWith(this.#text, calls)
  }

  /** All that was understood so far, for a log: a secret that comes in pieces is whole in it. */
  soFar(): object {
    return {
      model: this.#servedModel || this.#options.model,
      ...(this.#reasoning && { reasoning: this.#reasoning }),
      text: this.#text,
      tool_calls: this.#calls.calls.map((call) => ({ id: call.id, name: call.name, arguments: call.text })),
      finish_reason: this.#stopReason,
      usage: this.#usage,
    }
  }

  /** What was said, for an answer that never comes to its end; undefined when nothing was. It has no calls. */
  partial(): LlmAnswer | undefined {
    const said = this.#text.slice(0, this.#text.length - (this.#halves.get('text')?.text.length ?? 0))
    return said.trim() === '' ? undefined : this.#answerWith(said, [])
  }

  /** What the chunk adds. Its `message` may repeat what was said, and then counts for what goes beyond that. */
  #newIn(chunk: Chunk): Pick<Chunk, 'text' | 'reasoning' | 'calls'> {
    if (chunk.extent === 'piece') return chunk
    const rest = (said: string, whole: string) => {
      if (whole.startsWith(said)) return whole.slice(said.length)
      return chunk.extent === 'message' ? whole : ''
    }
    return {
      text: rest(this.#text, chunk.text),
      reasoning: rest(this.#reasoning, chunk.reasoning),
      calls: this.#calls.calls.length > 0 ? [] : chunk.calls,
    }
  }

  #answerWith(text: string, toolCalls: LlmAnswer['toolCalls']): LlmAnswer {
    const { model, costOf } = this.#options
    return {
      text: text.toWellFormed(),
      reasoning: this.#reasoning.toWellFormed(),
      toolCalls,
      usage: this.#usage ?? NO_USAGE,
      costUsd: this.#usage && costOf(this.#usage),
      stopReason: this.#stopReason || 'unknown',
      model: this.#servedModel || model,
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
