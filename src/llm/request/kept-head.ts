/** Keeps the part of a request before its messages: it is the same in most requests, and tools have many kilobytes. */
import type { LlmRequest } from '../llm.ts'

type Prompt = Pick<LlmRequest, 'system' | 'instructions' | 'tools' | 'outputSchema'>

/** `rest` is what else the part depends on, as a text. */
export type KeptHead = (prompt: Prompt, rest: string, write: () => string) => Buffer

export function createKeptHead(): KeptHead {
  let last: { readonly prompt: Prompt; readonly rest: string; readonly bytes: Buffer } | undefined
  return (prompt, rest, write) => {
    if (last && rest === last.rest && isSame(prompt, last.prompt)) return last.bytes
    const bytes = Buffer.from(write())
    const { system, instructions, tools, outputSchema } = prompt
    last = { prompt: { system, instructions, tools, outputSchema }, rest, bytes }
    return bytes
  }
}

const isSame = (a: Prompt, b: Prompt) =>
  a.tools === b.tools && a.system === b.system && a.instructions === b.instructions && a.outputSchema === b.outputSchema
