/** The border at which a model's words come in: text, reasoning, calls and errors pass here before anyone reads them. */
import { uuid7 } from '../lib/uuid7.ts'
import { parseJsonObject } from '../lib/json-object.ts'
import { mapStrings } from '../lib/map-strings.ts'
import type { Llm, LlmAnswer, LlmDelta, ModelToolCall } from '../llm/llm.ts'
import { LlmError } from '../llm/llm.ts'
import { redactMaskedKeys } from '../security/masked-keys.ts'
import type { Redactor } from '../security/redactor.ts'
import type { StreamRedactor } from '../security/stream-redactor.ts'

type Redact = (text: string) => string
type Piece = Exclude<LlmDelta, { kind: 'restart' }>

/**
 * The same model, none of whose words is a secret. Deltas joined are the text of the answer, but for a server key that
 * came in several of them: it is in none of the answer, while a delta loses only what is a whole key by itself.
 */
export function createRedactedLlm(llm: Llm, redactor: Redactor): Llm {
  return {
    model: redactor.redact(llm.model),
    async *stream(request, signal) {
      const deltas = llm.stream(request, signal)
      let parts = createParts(redactor)
      try {
        for (;;) {
          const next = await deltas.next()
          if (next.done) {
            for (const piece of parts.flush()) yield piece
            return redactAnswer(next.value, redactor.redact)
          }
          if (next.value.kind === 'restart') {
            parts = createParts(redactor)
            yield next.value
          } else {
            // Not `yield*`, which costs each piece two more turns of the microtask queue.
            for (const piece of parts.add(next.value)) yield piece
          }
        }
      } catch (error) {
        throw error instanceof LlmError ? redactError(error, redactor) : error
      } finally {
        // For a reader that leaves early. It returns nothing that anybody would see.
        await deltas.return(undefined as never)
      }
    },
  }
}

/** Each part of an answer is a text of its own. */
function createParts(redactor: Redactor) {
  const parts = new Map<string, { readonly texts: StreamRedactor; latest: Piece }>()
  const shown = (delta: Piece, text: string): Piece[] => (text === '' ? [] : [{ ...delta, text }])
  return {
    add(delta: Piece): Piece[] {
      const key = delta.kind === 'tool_input' ? `${delta.kind} ${delta.index}` : delta.kind
      const part = parts.get(key) ?? { texts: redactor.stream(), latest: delta }
      parts.set(key, part)
      part.latest = delta
      return shown(delta, redactor.redact(part.texts.push(delta.text)))
    },
    flush: (): Piece[] =>
      [...parts.values()].flatMap(({ texts, latest }) => shown(latest, redactor.redact(texts.flush()))),
  }
}

/** All that a provider may choose the words of. */
function redactAnswer(answer: LlmAnswer, redact: Redact): LlmAnswer {
  return {
    ...answer,
    text: redact(answer.text),
    reasoning: redact(answer.reasoning),
    toolCalls: answer.toolCalls.map((call) => redactCall(call, redact)),
    stopReason: redact(answer.stopReason),
    model: redact(answer.model),
  }
}

function redactCall(call: ModelToolCall, redact: Redact): ModelToolCall {
  return {
    // An id must stay the only one of its kind, which no placeholder is.
    id: redact(call.id) === call.id ? call.id : `call_${uuid7()}`,
    name: redact(call.name),
    arguments: redactArguments(call.arguments, redact),
  }
}

/** String by string: what stands inside a string may be escaped in ways that only a parser undoes. */
function redactArguments(text: string, redact: Redact): string {
  const input = parseJsonObject(text)
  if (!input) return redact(text)
  const safe = mapStrings(input, redact)
  return safe === input ? text : JSON.stringify(safe)
}

function redactError(error: LlmError, redactor: Redactor): LlmError {
  const { type, message, retryable, partial, lacksTools, cause } = error
  const said = partial && redactPartial(partial, redactor)
  return new LlmError(type, redactMaskedKeys(redactor.redact(message)), { retryable, partial: said, lacksTools, cause })
}

/** Only what the model was saying is cut off, not the names beside it. */
function redactPartial(partial: LlmAnswer, { redact, redactCutOff }: Redactor): LlmAnswer {
  const [text, reasoning] = [redactCutOff(partial.text), redactCutOff(partial.reasoning)]
  return { ...redactAnswer({ ...partial, text: '', reasoning: '' }, redact), text, reasoning }
}
