/**
 * An answer of the model as blocks of a request. Thinking is sent back exactly as it came and in its place, because the
 * API verifies its signature, and requires it with the tool calls that it led to.
 */
import type { AssistantPart } from '../../contract/values/message.ts'
import type { ModelMessage, ModelToolCall } from '../llm.ts'
import { argumentsJson, callIdFor, jsonOf, toolNameFor } from '../request/request-parts.ts'

export type Answer = Extract<ModelMessage, { role: 'assistant' }>

/** Returns the blocks as JSON. Thinking of other providers is left out: the API would refuse it. */
export function assistantBlocks({ text, toolCalls, parts }: Answer, withReasoning: boolean): string[] {
  const calls = toolCalls.map(callBlock)
  if (!parts || !withReasoning) return [...textBlocks(text), ...calls]
  const blocks: string[] = []
  let calledCount = 0
  for (const part of parts) {
    if (part.type === 'text') blocks.push(...textBlocks(part.text))
    else if (isOwnThinking(part)) {
      const before = part.calls_before ?? 0
      blocks.push(...calls.slice(calledCount, before), thinkingBlock(part))
      calledCount = Math.max(calledCount, before)
    }
  }
  return [...blocks, ...calls.slice(calledCount)]
}

const textBlocks = (text: string) => (text.trim() === '' ? [] : [jsonOf({ type: 'text', text })])

type Reasoning = Extract<AssistantPart, { type: 'reasoning' }>

export function isOwnThinking(part: AssistantPart): part is Reasoning {
  return part.type === 'reasoning' && part.provider_data?.provider === 'anthropic'
}

function thinkingBlock({ text, provider_data: proof }: Reasoning): string {
  const data = proof?.data ?? ''
  return jsonOf(
    proof?.kind === 'encrypted'
      ? { type: 'redacted_thinking', data }
      : { type: 'thinking', thinking: text, signature: data },
  )
}

function callBlock({ id, name, arguments: text }: ModelToolCall): string {
  const head = jsonOf({ type: 'tool_use', id: callIdFor(id), name: toolNameFor(name) })
  return `${head.slice(0, -1)},"input":${argumentsJson(text)}}`
}
