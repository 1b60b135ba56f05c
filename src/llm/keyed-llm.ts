/** A model whose key a command prints: it is asked before each request, and once more after the key was refused. */
import type { KeyCommand } from './key-command.ts'
import type { Llm } from './llm.ts'
import { LlmError } from './errors/llm-error.ts'

export type KeyedLlmOptions = {
  readonly model: string
  readonly command: Pick<KeyCommand, 'key' | 'keyAfter'>
  /** Called again only for another key. */
  readonly create: (key: string) => Llm
}

export function createKeyedLlm({ model, command, create }: KeyedLlmOptions): Llm {
  let knownLlm: { readonly key: string; readonly llm: Llm } | undefined
  const llmFor = (key: string): Llm => (knownLlm?.key === key ? knownLlm : (knownLlm = { key, llm: create(key) })).llm
  return {
    model,
    async *stream(request, signal) {
      const key = await command.key(signal)
      try {
        return yield* llmFor(key).stream(request, signal)
      } catch (error) {
        if (!(error instanceof LlmError) || !error.isUnauthorized) throw error
        const next = await command.keyAfter(key, signal)
        if (next === key) throw error
        return yield* llmFor(next).stream(request, signal)
      }
    },
  }
}
