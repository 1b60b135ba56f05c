/** What tests of the Chat Completions API share. */
import type { ChatCompletionChunk } from 'openai/resources/chat/completions'

export const LOOK_UP = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks an order up.',
    parameters: { type: 'object', properties: { number: { type: 'string' } } },
  },
} as const

export async function chunksOf(stream: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletionChunk[]> {
  return await Array.fromAsync(stream)
}

/** What all chunks say. */
export const textOf = (
  chunks: readonly ChatCompletionChunk[],
  field: 'content' | 'reasoning_content' = 'content',
): string => chunks.map(({ choices }) => Object(choices[0]?.delta)[field] ?? '').join('')
