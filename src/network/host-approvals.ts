/**
 * The hosts of one conversation that wait for a user's approval: one request per host, whatever number of connections
 * wait for it.
 */
import { Queue } from '../lib/queue.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Host } from './host.ts'
import { formatTarget } from './host.ts'

export type ApprovalRequest = {
  readonly id: string
  readonly host: Host
  readonly port: number
  /** RFC 3339, as `deadline`. */
  readonly at: string
  readonly deadline: string
}

export type ApprovalDecision = {
  readonly behavior: 'allow' | 'deny'
  /** `policy`: a change of the policy has decided. `gone`: nobody waits for it. `closing`: it will never be decided. */
  readonly by: 'user' | 'timeout' | 'policy' | 'gone' | 'closing'
  /** The name of the API key of the user's client. */
  readonly keyName?: string | undefined
}

export type HostApprovalsDeps = {
  /** Resolves when the request is stored, so that it can be shown; if that fails, the user is not asked. */
  readonly onRequest: (request: ApprovalRequest) => Promise<void>
  /** Called when a request ends without a user's answer. Must not throw. */
  readonly onAnswered: (request: ApprovalRequest, answer: ApprovalDecision) => void
  readonly deadlineMs?: number
  /** How long a request waits for another connection after the last one has ended, milliseconds. */
  readonly graceMs?: number
}

type Waiting = {
  readonly request: ApprovalRequest
  readonly answer: PromiseWithResolvers<ApprovalDecision>
  readonly timer: NodeJS.Timeout
  /** The connections that wait. */
  connections: number
  /** Set while there are none. */
  grace: NodeJS.Timeout | undefined
  /** True while a user's answer is being stored. */
  isAnswering: boolean
  /** Another end that came meanwhile. */
  late?: ApprovalDecision
}

const DEADLINE_MS = 60_000
/** A program that gives up often tries again: a user who decides meanwhile should not have decided about nothing. */
const GRACE_MS = 5000
/** An agent that tries random names must not flood the log, nor a user's screen. */
const MAX_PENDING = 20

export class HostApprovals {
  readonly #deps: HostApprovalsDeps
  readonly #byTarget = new Map<string, Waiting>()
  /** One answer at a time: the first counts. */
  readonly #answers = new Queue({ limit: 1 })

  constructor(deps: HostApprovalsDeps) {
    this.#deps = deps
  }

  get pending(): readonly ApprovalRequest[] {
    return [...this.#byTarget.values()].map(({ request }) => request)
  }

  /**
   * Resolves when it is decided, at the latest after the deadline; undefined if too many wait already. `signal` aborts when
   * the connection ends. A request without connections is closed.
   */
  async request(host: Host, port: number, signal: AbortSignal): Promise<ApprovalDecision | undefined> {
    const knownApproval = this.#byTarget.get(formatTarget(host, port))
    if (knownApproval) return await this.#join(knownApproval, signal)
    if (this.#byTarget.size >= MAX_PENDING) return undefined
    const deadlineMs = this.#deps.deadlineMs ?? DEADLINE_MS
    const now = Date.now()
    const times = { at: new Date(now).toISOString(), deadline: new Date(now + deadlineMs).toISOString() }
    const request: ApprovalRequest = { id: uuid7(), host, port, ...times }
    const expire = () => this.#settle(request, { behavior: 'deny', by: 'timeout' })
    const timer = setTimeout(expire, deadlineMs)
    const waiting: Waiting = {
      request,
      answer: Promise.withResolvers<ApprovalDecision>(),
      timer,
      connections: 0,
      grace: undefined,
      isAnswering: false,
    }
    this.#byTarget.set(formatTarget(host, port), waiting)
    const decision = this.#join(waiting, signal)
    try {
      await this.#deps.onRequest(request)
    } catch {
      this.#settle(request, { behavior: 'deny', by: 'closing' }) // the disk is full, or the log is closed
    }
    return await decision
  }

  async #join(waiting: Waiting, signal: AbortSignal): Promise<ApprovalDecision> {
    clearTimeout(waiting.grace)
    if (waiting.late?.by === 'gone') delete waiting.late
    waiting.connections++
    const leave = () => {
      if (--waiting.connections > 0) return
      const end = () => this.#settle(waiting.request, { behavior: 'deny', by: 'gone' })
      waiting.grace = setTimeout(end, this.#deps.graceMs ?? GRACE_MS)
    }
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    try {
      return await waiting.answer.promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /**
   * Lets the connections continue when `store` has stored the user's answer, which counts even if the deadline passes
   * meanwhile. Returns false if no request with this id waits. Rejects as `store` does; the request then still waits.
   */
  async answer(
    id: string,
    decision: ApprovalDecision,
    store: (request: ApprovalRequest) => Promise<void>,
  ): Promise<boolean> {
    return await this.#answers.run(async () => {
      const waiting = [...this.#byTarget.values()].find(({ request }) => request.id === id)
      if (!waiting) return false
      waiting.isAnswering = true
      try {
        await store(waiting.request)
        this.#end(waiting, decision)
      } finally {
        waiting.isAnswering = false
        if (waiting.late) this.#settle(waiting.request, waiting.late)
      }
      return true
    })
  }

  /** `decide` applies a changed policy to a host; undefined leaves it waiting. */
  recheck(decide: (host: Host, port: number) => ApprovalDecision['behavior'] | undefined): void {
    for (const request of this.pending) {
      const behavior = decide(request.host, request.port)
      if (behavior) this.#settle(request, { behavior, by: 'policy' })
    }
  }

  close(): void {
    for (const request of this.pending) this.#settle(request, { behavior: 'deny', by: 'closing' })
  }

  #settle(request: ApprovalRequest, answer: ApprovalDecision): void {
    const key = formatTarget(request.host, request.port)
    const waiting = this.#byTarget.get(key)
    if (waiting?.request.id !== request.id) return
    if (waiting.isAnswering && answer.by !== 'closing') {
      waiting.late ??= answer
      return
    }
    if (this.#end(waiting, answer)) this.#deps.onAnswered(request, answer)
  }

  /** Returns false if it has ended before. */
  #end({ request, timer, grace, answer }: Waiting, decision: ApprovalDecision): boolean {
    const key = formatTarget(request.host, request.port)
    if (this.#byTarget.get(key)?.request.id !== request.id) return false
    this.#byTarget.delete(key)
    clearTimeout(timer)
    clearTimeout(grace)
    answer.resolve(decision)
    return true
  }
}
