/** Redacts everything that a model returns: text, reasoning, calls and errors, before anything else reads them. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { uuid7 } from '../../lib/uuid7.ts'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import { mapStrings, stringsIn } from '../../lib/json/map-strings.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { AssistantPart } from '../../contract/values/message.ts'
import type { Llm, LlmAnswer, LlmPiece, ModelTool, ModelToolCall } from '../../llm/llm.ts'
import { partOf } from '../../llm/answer/answer-assembly.ts'
import { CutAnswer, leaveAnswer } from '../../llm/llm.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { redactMaskedKeys } from '../../security/redaction/masked-keys.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import type { StreamRedactor } from '../../security/redaction/stream-redactor.ts'
import { SLICE_CHARS } from '../../security/redaction/stream-redactor.ts'

/**
 * Returns the same model with secrets redacted in its output. The joined deltas equal the text of the answer, except
 * for a server key that was split over several deltas: the answer never contains it, while a delta loses only what is a
 * whole key by itself.
 */
export function createRedactedLlm(llm: Llm, redactor: Redactor): Llm {
  return {
    model: redactor.redact(llm.model),
    async *stream(request, signal) {
      const deltas = llm.stream(request, signal)
      let parts = createParts(redactor, request.tools)
      try {
        for (;;) {
          const next = await deltas.next()
          if (next.done) {
            for (const piece of parts.flush()) yield piece
            return await redactAnswer(next.value, redactor, parts.safeId)
          }
          if (next.value.kind === 'retry') {
            parts = createParts(redactor, request.tools)
            const { message, nextModel, ...retry } = next.value
            const model = nextModel === undefined ? {} : { nextModel: redactor.redact(nextModel) }
            yield { ...retry, message: redactMessage(message, redactor), ...model }
          } else {
            // `yield*` would cost each piece two more microtasks.
            for (const slice of slicesOf(next.value)) {
              for (const piece of parts.add(slice)) yield piece
              if (slice !== next.value) await yieldToLoop()
            }
          }
        }
      } catch (error) {
        if (error instanceof CutAnswer) throw new CutAnswer(await redactPartial(error.partial, redactor))
        throw error instanceof LlmError ? await redactError(error, redactor) : error
      } finally {
        // A reader may leave early.
        await leaveAnswer(deltas)
      }
    },
  }
}

/** Splits a long delta, so that no single one blocks the event loop for long. */
function slicesOf(delta: LlmPiece): LlmPiece[] {
  const { text } = delta
  if (text.length <= SLICE_CHARS) return [delta]
  const count = Math.ceil(text.length / SLICE_CHARS)
  return Array.from({ length: count }, (_, i) => ({
    ...delta,
    text: text.slice(i * SLICE_CHARS, (i + 1) * SLICE_CHARS),
  }))
}

/** Each part of an answer is a separate text. */
function createParts(redactor: Redactor, tools: readonly ModelTool[]) {
  const parts = new Map<string, { readonly texts: StreamRedactor; latest: LlmPiece }>()
  const pieceOf = (delta: LlmPiece, text: string): LlmPiece[] => (text === '' ? [] : [{ ...delta, text }])
  const safeId = createSafeIds(redactor)
  let toolNames: ReadonlySet<string> | undefined
  // Any other name could be a secret, or begin one.
  const safeName = (calledName: string) => {
    toolNames ??= new Set(tools.map(({ name }) => name))
    return toolNames.has(calledName) ? calledName : ''
  }
  return {
    safeId,
    add(delta: LlmPiece): LlmPiece[] {
      const key = partOf(delta)
      const part = parts.get(key) ?? { texts: redactor.stream(), latest: delta }
      parts.set(key, part)
      part.latest = delta.kind === 'tool_input' ? { ...delta, id: safeId(delta.id), name: safeName(delta.name) } : delta
      return pieceOf(part.latest, redactor.redact(part.texts.push(delta.text)))
    },
    flush: (): LlmPiece[] =>
      [...parts.values()].flatMap(({ texts, latest }) => pieceOf(latest, redactor.redact(texts.flush()))),
  }
}

/** Redacts all texts that a provider controls. */
async function redactAnswer(
  answer: LlmAnswer,
  redactor: Redactor,
  safeId = createSafeIds(redactor),
): Promise<LlmAnswer> {
  const { redact, redactInSlices } = redactor
  const toolCalls: ModelToolCall[] = []
  for (const call of answer.toolCalls) toolCalls.push(await redactCall(call, redactor, safeId))
  const { parts, ...whole } = answer
  const [text, reasoning] = [await redactInSlices(answer.text), await redactInSlices(answer.reasoning)]
  const keepsParts = parts && text === answer.text && reasoning === answer.reasoning && (await areSafe(parts, redactor))
  return {
    ...whole,
    text,
    reasoning,
    ...(keepsParts && { parts }),
    toolCalls,
    stopReason: redact(answer.stopReason),
    model: redact(answer.model),
  }
}

/**
 * Returns true if no part has to be redacted. Otherwise all of them are dropped, and the answer keeps only its redacted
 * text: the provider refuses reasoning that was changed, and a secret may be split over two parts.
 */
async function areSafe(parts: readonly AssistantPart[], { redactInSlices }: Redactor): Promise<boolean> {
  for (const part of parts) {
    const { data = '', id = '' } = (part.type === 'reasoning' && part.provider_data) || {}
    // A text inside of JSON may be escaped.
    const inside =
      part.type === 'reasoning' && part.provider_data?.provider === 'openai'
        ? [...stringsIn(parseJsonObject(data))]
        : []
    for (const each of [part.text, data, id, ...inside]) if ((await redactInSlices(each)) !== each) return false
  }
  return true
}

async function redactCall(
  call: ModelToolCall,
  redactor: Redactor,
  safeId: (id: string) => string,
): Promise<ModelToolCall> {
  return {
    id: safeId(call.id),
    name: redactor.redact(call.name),
    arguments: await redactArguments(call.arguments, redactor),
  }
}

/** Replaces ids that contain secrets: an id must stay unique, which a placeholder is not. Equal ids stay equal. */
function createSafeIds({ redact }: Redactor): (id: string) => string {
  const replacements = new Map<string, string>()
  return (id) => {
    if (redact(id) === id) return id
    const safeId = replacements.get(id) ?? `call_${uuid7()}`
    replacements.set(id, safeId)
    return safeId
  }
}

/** Redacts string by string: the content of a string may be escaped in ways that only a parser decodes. */
async function redactArguments(text: string, { redact, redactInSlices }: Redactor): Promise<string> {
  const input = parseJsonObject(text)
  if (!input) return await redactInSlices(text)
  const slices = createSlices()
  const replacements = new Map<string, string>()
  for (const each of stringsIn(input)) {
    const safe = each.length > SLICE_CHARS ? await redactInSlices(each) : redact(each)
    if (safe !== each) replacements.set(each, safe)
    const turn = slices.rest()
    if (turn) await turn
  }
  return replacements.size === 0 ? text : JSON.stringify(mapStrings(input, (each) => replacements.get(each) ?? each))
}

async function redactError(error: LlmError, redactor: Redactor): Promise<LlmError> {
  const { type, message, retryable, partial, lacksTools, cause } = error
  const redactedPartial = partial && (await redactPartial(partial, redactor))
  return new LlmError(type, redactMessage(message, redactor), {
    retryable,
    partial: redactedPartial,
    lacksTools,
    cause,
  })
}

/** Providers quote a key that they refuse, mostly with its middle masked. */
const redactMessage = (message: string, { redact }: Redactor) => redactMaskedKeys(redact(message))

/** Redacts the text only: the names cannot be incomplete. */
async function redactPartial(partial: LlmAnswer, redactor: Redactor): Promise<LlmAnswer> {
  const text = await redactor.redactCutOffInSlices(partial.text)
  const reasoning = await redactor.redactCutOffInSlices(partial.reasoning)
  return { ...(await redactAnswer({ ...partial, text: '', reasoning: '' }, redactor)), text, reasoning }
}
