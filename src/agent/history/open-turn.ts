/** An answer with calls that do not all have a result: the model reads none of it before they have. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ImagePart } from '../../contract/values/message.ts'
import type { ModelMessage, ModelToolCall } from '../../llm/llm.ts'
import type { ResultPlace } from './shorten.ts'

export type OpenTurn = {
  readonly answer: EventOf<'AssistantMessage'>
  readonly callIds: readonly string[]
  readonly calls: ModelToolCall[]
  readonly names: Map<string, string>
  readonly results: Map<string, { readonly message: ModelMessage; readonly origin: ResultPlace }>
  readonly images: Map<string, readonly ImagePart[]>
}

export function openTurn(answer: EventOf<'AssistantMessage'>): OpenTurn {
  return {
    answer,
    callIds: answer.tool_use_ids,
    calls: [],
    names: new Map(),
    results: new Map(),
    images: new Map(),
  }
}

/** True if every other call has its result. */
export const waitsOnlyFor = ({ callIds, results }: OpenTurn, toolUseId: string): boolean =>
  callIds.includes(toolUseId) && !results.has(toolUseId) && results.size === callIds.length - 1
