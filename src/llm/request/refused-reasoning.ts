/**
 * Reasoning that an endpoint refused: all up to the latest at that time. It is found by its data and not by its place,
 * because a compaction changes the places.
 */
import { createHash } from 'node:crypto'
import type { ModelMessage } from '../llm.ts'

/** Returns a short name of the latest reasoning that is sent back; undefined if no reasoning is sent back. */
export function latestReasoning(messages: readonly ModelMessage[]): string | undefined {
  const data = messages.findLast((message) => dataIn(message) !== undefined)
  return data && nameOf(data)
}

/** Returns the index of the first message after the named reasoning: 0 if it is not here any more, or undefined. */
export function indexAfter(messages: readonly ModelMessage[], refusedId: string | undefined): number {
  return refusedId === undefined ? 0 : messages.findLastIndex((message) => nameOf(message) === refusedId) + 1
}

function nameOf(message: ModelMessage): string | undefined {
  const data = dataIn(message)
  return data === undefined ? undefined : createHash('sha256').update(data).digest('base64').slice(0, 16)
}

function dataIn(message: ModelMessage): string | undefined {
  if (message.role !== 'assistant') return undefined
  const part = message.parts?.findLast((each) => each.type === 'reasoning' && each.provider_data !== undefined)
  return part?.type === 'reasoning' ? part.provider_data?.data : undefined
}
