/** Parts of request bodies that are the same for all APIs. */
import { createHash } from 'node:crypto'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import type { LlmRequest } from '../llm.ts'

/** Returns the system prompt with what follows it, for APIs that have one text. */
export const systemOf = ({ system, instructions }: Pick<LlmRequest, 'system' | 'instructions'>): string =>
  instructions === undefined ? system : [system, instructions].filter((text) => text.trim()).join('\n\n')

export const jsonOf = (value: object): string => wellFormedJson(JSON.stringify(value))

/**
 * Returns the name of a call as a request may repeat it: endpoints refuse a history with a name of other characters,
 * and then every later request of the conversation would fail.
 */
export const toolNameFor = (name: string): string => name.slice(0, 64).replaceAll(/[^\w-]/g, '_') || 'unknown'

/** Returns the arguments of a call as the text of a JSON object, which endpoints parse. */
export const argumentsJson = (text: string): string =>
  wellFormedJson(parseJsonObject(text) ? text : JSON.stringify({ invalid_arguments: text }))

/** Returns the id of a call, or a hash of it: other providers' ids may be longer, or have other characters. */
export function callIdFor(id: string): string {
  if (/^[\w-]{1,64}$/.test(id)) return id
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`
}

export function withoutKeys(
  record: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))
}

/** Returns the request with as many messages as it had when it was made: the list grows while an attempt fails. */
export function withMessages(request: LlmRequest, count: number): LlmRequest {
  const { messages } = request
  return messages.length === count ? request : { ...request, messages: messages.slice(0, count) }
}

/**
 * An escaped pair, an escaped lone surrogate, or any other escape, which may be a backslash before a harmless `ud800`.
 */
const ESCAPES = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^]/g

const LONE_LENGTH = String.raw`\ud800`.length

/**
 * Lone surrogates, which are halves of characters, become U+FFFD. Providers refuse a request with one, and with it every
 * later request of the conversation.
 */
export function wellFormedJson(json: string): string {
  const text = json.toWellFormed()
  if (!/\\u[dD][89a-fA-F]/.test(text)) return text
  return text.replaceAll(ESCAPES, (escape) => (escape.length === LONE_LENGTH ? String.raw`\ufffd` : escape))
}
