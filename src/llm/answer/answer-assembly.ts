/** Makes one answer of a model's chunks, and says whether it is all the model had to say. */
import { NO_USAGE } from '../../contract/message.ts'
import type { Usage } from '../../contract/message.ts'
import { AnswerTooLarge, MAX_ANSWER_CHARS } from './answer-limits.ts'
import type { Chunk } from './chat-chunk.ts'
import { cutReasonOf } from './finish-reason.ts'
import { partOf } from '../llm.ts'
import type { LlmAnswer, LlmPiece } from '../llm.ts'
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

export type AnswerAssembly = {
  /** The deltas a chunk adds. One never ends inside a character: the half of a pair waits for the other. Throws `AnswerTooLarge`. */
  add(chunk: Chunk): LlmPiece[]
  /** The server said that there is no more. */
  end(): void
  /** The connection broke, though the answer seemed to have ended. */
  breakOff(): void
  /** What still waited for its other half. */
  flush(): LlmPiece[]
  /** Whether the model is known to have come to its end; what breaks after that costs nothing. */
  readonly hasEnded: boolean
  /** Throws `CutShort` or `NotAnAnswer` when this is not an answer in full. */
  finish(): LlmAnswer
  /** All that was understood so far, for a log: a secret that comes in pieces is whole in it. */
  soFar(): object
  /** What was said, for an answer that never comes to its end; undefined when nothing was. It has no calls. */
  partial(): LlmAnswer | undefined
}

export type AnswerOptions = {
  readonly model: string
  /** Ids of earlier calls. Some vendors count from `call_0` in every answer; a conversation needs each id once. */
  readonly takenIds: ReadonlySet<string>
  readonly costOf: (usage: Usage) => number | undefined
}

export function createAnswerAssembly({ model, takenIds, costOf }: AnswerOptions): AnswerAssembly {
  const calls = createToolCallAssembly()
  const halves = new Map<string, LlmPiece>()
  let text = ''
  let reasoning = ''
  let size = 0
  let stopReason = ''
  let usage: Usage | undefined
  let servedModel = ''
  let sawAnswer = false
  let sawOther = false
  let sawEnd = false
  let isBroken = false

  /** What the chunk adds. Its `message` may repeat what was said, and then counts for what goes beyond that. */
  function newIn(chunk: Chunk): Pick<Chunk, 'text' | 'reasoning' | 'calls'> {
    if (chunk.extent === 'piece') return chunk
    const rest = (said: string, whole: string) => {
      if (whole.startsWith(said)) return whole.slice(said.length)
      return chunk.extent === 'message' ? whole : ''
    }
    return {
      text: rest(text, chunk.text),
      reasoning: rest(reasoning, chunk.reasoning),
      calls: calls.calls.length > 0 ? [] : chunk.calls,
    }
  }

  function answerWith(text: string, toolCalls: LlmAnswer['toolCalls']): LlmAnswer {
    const counted = usage ?? NO_USAGE
    return {
      text: text.toWellFormed(),
      reasoning: reasoning.toWellFormed(),
      toolCalls,
      usage: counted,
      costUsd: usage && costOf(usage),
      stopReason: stopReason || 'unknown',
      model: servedModel || model,
    }
  }

  function whole(delta: LlmPiece): LlmPiece[] {
    const part = partOf(delta)
    const all = (halves.get(part)?.text ?? '') + delta.text
    const end = isHighSurrogate(all.charCodeAt(all.length - 1)) ? all.length - 1 : all.length
    if (end < all.length) halves.set(part, { ...delta, text: all.slice(end) })
    else halves.delete(part)
    return end > 0 ? [{ ...delta, text: all.slice(0, end).toWellFormed() }] : []
  }

  return {
    add(chunk) {
      sawAnswer ||= chunk.isAnswer
      sawOther ||= !chunk.isAnswer
      stopReason = chunk.finishReason || stopReason
      usage = chunk.usage ?? usage
      servedModel = chunk.model || servedModel
      const added = newIn(chunk)
      text += added.text
      reasoning += added.reasoning
      const inputs = added.calls.map((fragment) => calls.add(fragment))
      size += added.text.length + added.reasoning.length + inputs.reduce((sum, input) => sum + input.text.length, 0)
      // Usage may also come first; it is the end only when nothing follows.
      sawEnd = chunk.isLast && size > 0
      if (size > MAX_ANSWER_CHARS) throw new AnswerTooLarge(`it is longer than ${MAX_ANSWER_CHARS} characters`)
      return [
        ...whole({ kind: 'reasoning', text: added.reasoning }),
        ...whole({ kind: 'text', text: added.text }),
        ...inputs.flatMap((input) => whole({ kind: 'tool_input', index: input.call, text: input.text })),
      ]
    },
    end() {
      sawEnd = true
    },
    breakOff() {
      isBroken = true
    },
    flush() {
      const left = [...halves.values()].map((half) => ({ ...half, text: half.text.toWellFormed() }))
      halves.clear()
      return left
    },
    get hasEnded() {
      return sawEnd || stopReason !== ''
    },
    finish() {
      if (sawOther && !sawAnswer) throw new NotAnAnswer('')
      // Some vendors give a finish reason with every chunk: where the connection broke it proves nothing.
      const isCertain = stopReason !== '' && !isBroken && cutReasonOf(stopReason) === undefined
      const { calls: toolCalls, incomplete } = calls.finish({ isCertain, takenIds })
      const isEmpty = text === '' && toolCalls.length === 0
      const isCut = stopReason === '' ? !sawEnd || incomplete > 0 || isEmpty : isBroken && incomplete > 0
      // OpenRouter's finish reason for a provider that failed behind it.
      if (isCut || stopReason === 'error') throw new CutShort('the answer ended before the model did')
      return answerWith(text, toolCalls)
    },
    soFar: () => ({
      model: servedModel || model,
      ...(reasoning && { reasoning }),
      text,
      tool_calls: calls.calls.map((call) => ({ id: call.id, name: call.name, arguments: call.text })),
      finish_reason: stopReason,
      usage,
    }),
    partial() {
      const said = text.slice(0, text.length - (halves.get('text')?.text.length ?? 0))
      return said.trim() === '' ? undefined : answerWith(said, [])
    },
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
