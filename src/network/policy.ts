/** Network policies: pure decisions about one host and port, and about one policy under another. */
import type { NetworkMode, NetworkPolicy } from '../contract/values/network.ts'
import type { AllowEntry } from './allow-entry.ts'
import { includes, matches, parseEntry } from './allow-entry.ts'
import type { Host } from './host.ts'

/** A policy with parsed entries. */
export type Rules = {
  readonly mode: NetworkMode
  readonly allow: readonly AllowEntry[]
  readonly deny: readonly AllowEntry[]
  readonly ask: boolean
}

export type PolicyDecision =
  | { readonly decision: 'allow' | 'ask' }
  /** `isFinal`: no entry of the conversation's own policy would change it. */
  | { readonly decision: 'deny'; readonly reason: string; readonly isFinal: boolean }

const STRICTEST_FIRST: readonly NetworkMode[] = ['none', 'allowlist', 'open']

/** Returns rules, or the first invalid entry, for a message. */
export function parseRules(policy: NetworkPolicy): Rules | { readonly wrong: string } {
  const { mode, allow = [], deny = [], ask = false } = policy
  const wrong = [...allow, ...deny].find((text) => !parseEntry(text))
  if (wrong !== undefined) return { wrong }
  const parse = (texts: readonly string[]) => texts.map(parseEntry).filter((entry) => entry !== undefined)
  return { mode, allow: parse(allow), deny: parse(deny), ask }
}

/** Returns the stricter of two modes. */
export function stricterMode(a: NetworkMode, b: NetworkMode): NetworkMode {
  return STRICTEST_FIRST.indexOf(a) < STRICTEST_FIRST.indexOf(b) ? a : b
}

/**
 * Decides about a host under `own` and `ceiling`. A denial by either applies, and users are never asked to exceed the
 * ceiling.
 */
export function decide(own: Rules, ceiling: Rules, host: Host, port: number): PolicyDecision {
  const above = decideBy(ceiling, host, port)
  if (above.decision !== 'allow')
    return { decision: 'deny', reason: 'the server’s operator does not allow it', isFinal: true }
  return decideBy(own, host, port)
}

function decideBy({ mode, allow, deny, ask }: Rules, host: Host, port: number): PolicyDecision {
  if (mode === 'open') return { decision: 'allow' }
  if (mode === 'none') return { decision: 'deny', reason: 'this conversation has no network', isFinal: true }
  const isListed = (entries: readonly AllowEntry[]) => entries.some((entry) => matches(entry, host, port))
  if (isListed(deny)) return { decision: 'deny', reason: 'it is on the deny list', isFinal: false }
  if (isListed(allow)) return { decision: 'allow' }
  return ask ? { decision: 'ask' } : { decision: 'deny', reason: 'it is not on the allow list', isFinal: false }
}

/** Returns how `own` exceeds `ceiling`, as a clause; undefined if it does not. */
export function findExcess(own: NetworkPolicy, ceiling: NetworkPolicy): string | undefined {
  if (stricterMode(own.mode, ceiling.mode) !== own.mode)
    return `the mode ${own.mode} is more than ${ceiling.mode}, which is the most that this server permits`
  if (own.mode !== 'allowlist' || ceiling.mode !== 'allowlist') return undefined
  const above = (ceiling.allow ?? []).map(parseEntry).filter((entry) => entry !== undefined)
  const isCovered = (text: string) => {
    const entry = parseEntry(text)
    return entry !== undefined && above.some((each) => includes(each, entry))
  }
  const excess = own.allow?.find((text) => !isCovered(text))
  return excess === undefined ? undefined : `${excess} is not among the hosts that this server permits`
}
