/**
 * What the gate has decided about the open calls of a turn: each of them once when the turn begins, and again when it is
 * about to begin itself. The only file that says for how long a decision holds.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AskedToolUse } from '../contract/values/permission.ts'
import { createSlices } from '../lib/time-slices.ts'
import type { GateRules, GatedCall } from './rules/gate-rules.ts'
import type { CallVerdict, PermissionGate } from './permissions.ts'
import { letsAllRun } from './permissions.ts'

/** Says which calls must be decided before any of them begins, and why others will not run. */
export type GatedTurn = {
  readonly permissionCalls: readonly AskedToolUse[]
  readonly denials: ReadonlyMap<string, string>
}

/** `calls` have not begun. A call must be allowed by each of the rules. */
export type ToDecide = { readonly calls: readonly GatedCall[]; readonly rules: readonly GateRules[] }

type DecidedCall = Pick<GatedCall, 'name' | 'input' | 'hook' | 'approved'> & { readonly verdict: CallVerdict }

const NOTHING: GatedTurn = { permissionCalls: [], denials: new Map() }

export class TurnGate {
  readonly #gate: Pick<PermissionGate, 'prepare' | 'judge'>
  #rules: readonly GateRules[] = []
  #decidedCalls = new Map<string, DecidedCall>()
  /** The calls that were decided last, to begin now. */
  #next: ReadonlySet<string> = new Set()

  constructor(gate: Pick<PermissionGate, 'prepare' | 'judge'>) {
    this.#gate = gate
  }

  /**
   * Decides the calls of which nothing is known, and `next` in any case, because links and directories may have changed.
   * Other work gets a turn of the event loop in between. Ends early when the signal is aborted.
   */
  async decide({ calls, rules }: ToDecide, next: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    if (letRun(calls, rules)) return this.#forget()
    for (const each of rules) await this.#gate.prepare(each)
    const knownCalls = areSame(rules, this.#rules) ? this.#decidedCalls : new Map<string, DecidedCall>()
    this.#forget()
    const decidedCalls = new Map<string, DecidedCall>()
    const slices = createSlices()
    // Those that are about to begin come last: as little as possible may change until then.
    for (const isNext of [false, true]) {
      for (const call of calls) {
        if (next.has(call.toolUseId) !== isNext) continue
        const before = isNext ? undefined : knownCalls.get(call.toolUseId)
        const isKnown = before !== undefined && isAbout(before, call)
        decidedCalls.set(call.toolUseId, isKnown ? before : { ...call, verdict: this.#gate.judge(call, rules) })
        const turn = isKnown ? undefined : slices.rest()
        if (turn) await turn
        if (signal.aborted) return
      }
    }
    this.#rules = rules
    this.#decidedCalls = decidedCalls
    this.#next = next
  }

  /** Returns undefined if `decide` has to be called again: the rules or a call have changed since, or others begin now. */
  gated({ calls, rules }: ToDecide, next: readonly string[]): GatedTurn | undefined {
    if (letRun(calls, rules)) return NOTHING
    if (!areSame(rules, this.#rules) || !next.every((id) => this.#next.has(id))) return undefined
    const permissionCalls: AskedToolUse[] = []
    const denials = new Map<string, string>()
    for (const call of calls) {
      const decidedCall = this.#decidedCalls.get(call.toolUseId)
      if (!decidedCall || !isAbout(decidedCall, call)) return undefined
      const { verdict } = decidedCall
      if (verdict.behavior === 'deny') denials.set(call.toolUseId, verdict.reason)
      if (verdict.behavior === 'ask') permissionCalls.push(verdict.ask)
    }
    return { permissionCalls, denials }
  }

  #forget(): void {
    this.#decidedCalls = new Map()
    this.#next = new Set()
  }
}

const letRun = (calls: readonly GatedCall[], rules: readonly GateRules[]): boolean =>
  rules.every(letsAllRun) && !calls.some(({ hook }) => hook?.decision)

const isAbout = (decidedCall: DecidedCall, { name, input, hook, approved }: GatedCall): boolean =>
  decidedCall.name === name &&
  decidedCall.input === input &&
  decidedCall.hook === hook &&
  decidedCall.approved === approved

function areSame(some: readonly GateRules[], others: readonly GateRules[]): boolean {
  return some.length === others.length && some.every((each, at) => isSame(each, others[at]))
}

function isSame(one: GateRules, other: GateRules | undefined): boolean {
  if (other === undefined || one === other) return one === other
  const { rules, ...rest } = one
  const { rules: otherRules, ...otherRest } = other
  // All fields, so that one that is added to the type later is compared as well.
  if (!isDeepStrictEqual(rest, otherRest)) return false
  return (['allow', 'ask', 'deny'] as const).every((list) => {
    const [some, others] = [rules[list], otherRules[list]]
    // The texts are compared: the rules of subagents are parsed each time.
    return some === others || (some.length === others.length && some.every(({ text }, at) => text === others[at]?.text))
  })
}
