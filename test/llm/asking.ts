/** Asking a model in tests: one question, everything it answered, and raw streams as vendors send them. */
import { HttpLlm } from '../../src/llm/http-llm.ts'
import type { HttpLlmOptions } from '../../src/llm/http-llm.ts'
import { LlmError } from '../../src/llm/errors/llm-error.ts'
import type { Llm, LlmAnswer, LlmDelta, LlmRequest } from '../../src/llm/llm.ts'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { PATIENCE_MS } from '../support/patience.ts'

export const QUESTION: LlmRequest = {
  system: 'Be brief.',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'What is here?' }] }],
  tools: [{ name: 'Bash', description: 'Runs a command.', inputSchema: { type: 'object', properties: {} } }],
}

export type Heard = { deltas: LlmDelta[]; answer?: LlmAnswer; error?: LlmError }

/** Asks, and keeps what was said also when it failed. Anything thrown that is no `LlmError` is thrown on. */
export async function ask(llm: Llm, request = QUESTION, signal = AbortSignal.timeout(PATIENCE_MS)): Promise<Heard> {
  const deltas: LlmDelta[] = []
  const stream = llm.stream(request, signal)
  try {
    for (;;) {
      const { done, value } = await stream.next()
      if (done) return { deltas, answer: value }
      deltas.push(value)
    }
  } catch (error) {
    if (error instanceof LlmError) return { deltas, error }
    throw error
  }
}

/** The text a client shows: what came since the last retry. */
export function shownText(deltas: readonly LlmDelta[], kind: 'text' | 'reasoning' = 'text'): string {
  const from = deltas.findLastIndex((delta) => delta.kind === 'retry') + 1
  return deltas
    .slice(from)
    .map((delta) => (delta.kind === kind ? delta.text : ''))
    .join('')
}

type Config = HttpLlmOptions['config']

export function chatWith(model: ScriptedModel, config: Config = {}, options: Omit<HttpLlmOptions, 'config'> = {}): Llm {
  return new HttpLlm({
    config: { model: 'test-model', base_url: model.baseUrl, num_retries: 0, ...config },
    retryBaseMs: 1,
    ...options,
  })
}

/** A model that plays the script, asked once. */
export async function askScript(script: Script, config: Config = {}, options: Omit<HttpLlmOptions, 'config'> = {}) {
  await using model = await startScriptedModel(script)
  const heard = await ask(chatWith(model, config, options))
  return { ...heard, requests: model.requests }
}

/** A turn of raw chunks: each delta or chunk as one event, then `[DONE]`. */
export function rawTurn(...chunks: object[]): ScriptedTurn {
  return { raw: [...chunks.map(event), 'data: [DONE]\n\n'] }
}

export function event(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

export function delta(fields: object, finish_reason: string | null = null): object {
  return { choices: [{ index: 0, delta: fields, finish_reason }] }
}

export const stop = delta({}, 'stop')
export const toolCalls = delta({}, 'tool_calls')
