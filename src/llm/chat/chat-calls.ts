/** Tool calls of earlier answers, as a Chat Completions request repeats them. */
import { createHash } from 'node:crypto'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import type { ModelMessage } from '../llm.ts'
import { argumentsJson, toolNameFor } from '../request/request-parts.ts'
import type { ChatDialect } from './chat-dialect.ts'

export type CallForm = Pick<ChatDialect, 'callIds' | 'callExtras'>

type Answer = Extract<ModelMessage, { role: 'assistant' }>

/** Returns the calls as the model made them, as far as a request may repeat them. */
export function callBodies({ toolCalls, parts }: Answer, form: CallForm) {
  const extras = form.callExtras === 'none' ? undefined : extrasIn(parts)
  return toolCalls.map(({ id, name, arguments: text }, at) => ({
    id: idFor(id, form),
    type: 'function',
    function: { name: toolNameFor(name), arguments: argumentsJson(text) },
    extra_content: extras?.get(at) ?? (form.callExtras === 'marked' ? FOREIGN : undefined),
  }))
}

/** The mark of Google's documentation for calls that another model made. */
const FOREIGN = { google: { thought_signature: 'skip_thought_signature_validator' } }

function extrasIn(parts: Answer['parts']): ReadonlyMap<number, object> {
  const extras = new Map<number, object>()
  for (const part of parts ?? []) {
    if (part.type !== 'reasoning' || part.provider_data?.kind !== 'tool_call') continue
    const extra = parseJsonObject(part.provider_data.data)
    if (extra) extras.set(part.calls_before ?? 0, extra)
  }
  return extras
}

/** Returns the list that came with the answer; undefined if there was none, or if it is not sent back. */
export function reasoningDetails(parts: NonNullable<Answer['parts']>, { callExtras }: CallForm): unknown {
  if (callExtras === 'none') return undefined
  const keptPart = parts.find((part) => part.type === 'reasoning' && part.provider_data?.kind === 'reasoning_details')
  const data = keptPart?.type === 'reasoning' ? keptPart.provider_data?.data : undefined
  return data === undefined ? undefined : parseJsonObject(data)?.['reasoning_details']
}

const ACCEPTED = { long: /^/, forty: /^.{1,40}$/, nine: /^[a-zA-Z0-9]{9}$/ } as const
const HASH_CHARS = { long: 32, forty: 32, nine: 9 } as const

/** The same id is replaced in the call and in its result. */
export function idFor(id: string, { callIds }: Pick<CallForm, 'callIds'>): string {
  if (ACCEPTED[callIds].test(id)) return id
  return createHash('sha256').update(id).digest('hex').slice(0, HASH_CHARS[callIds])
}
