/** The network of one conversation: its current policy, its proxy, its pending requests, and its events in the log. */
import type { Server } from 'node:net'
import type { EventDraft } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { DecideNetworkRequest, NetworkMode, NetworkPolicy, ServerNetwork } from '../contract/values/network.ts'
import { MAX_ENTRIES } from '../contract/values/network.ts'
import type { OpenRequestOf } from '../contract/request.ts'
import { orAborted } from '../lib/bounded-wait.ts'
import { AccessLog } from '../network/access-log.ts'
import type { ApprovalDecision, ApprovalRequest } from '../network/host-approvals.ts'
import { HostApprovals } from '../network/host-approvals.ts'
import type { ConnectionPermits } from '../network/connection-permits.ts'
import type { Host } from '../network/host.ts'
import { formatHost, formatTarget, parseHost } from '../network/host.ts'
import { decide } from '../network/policy.ts'
import type { ProxyAccess, Judgement, ProxyOutcome } from '../network/proxy.ts'
import { NetworkProxy } from '../network/proxy.ts'
import type { OutboundConnector } from '../network/outbound-connector.ts'
import { effectivePolicy } from '../network/server-policy.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { byKey, closing } from '../state/request-drafts.ts'

/** What all conversations share. */
export type NetworkDeps = {
  readonly server: ServerNetwork
  readonly reach: OutboundConnector
  readonly createPermits: () => ConnectionPermits
  readonly onOutcome: (outcome: ProxyOutcome) => void
  /** How long a connection waits for a user, in milliseconds. */
  readonly approvalDeadlineMs?: number
}

export type ConversationNetworkDeps = NetworkDeps & {
  /** Returns the current policy of the conversation; undefined: the server's default. */
  readonly policy: () => NetworkPolicy | undefined
  /** Returns the id of the active run. */
  readonly runId: () => string | undefined
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  /** See `Redactor.redactAnyCase`. A command can put the value of a secret into the name of a host. */
  readonly redact: (text: string) => string
  readonly onFault: (error: unknown) => void
}

/** Changes the policy durably. Calls `change` in turn, with the policy at that time. */
export type ChangePolicy = (change: (policy: NetworkPolicy | undefined) => NetworkPolicy) => Promise<void>

export class ConversationNetwork {
  readonly #deps: ConversationNetworkDeps
  readonly #approvals: HostApprovals
  readonly #log: AccessLog
  readonly #proxy: NetworkProxy
  #emitted: Promise<unknown> = Promise.resolve()

  constructor(deps: ConversationNetworkDeps) {
    this.#deps = deps
    this.#approvals = new HostApprovals({
      onRequest: (request) => deps.emit([requestOf(request, this.#nameOf(request), deps.runId())]),
      onAnswered: (request, answer) => this.#noteAnswer(request, answer),
      ...(deps.approvalDeadlineMs !== undefined && { deadlineMs: deps.approvalDeadlineMs }),
    })
    this.#log = new AccessLog((rows) =>
      this.#emit(
        rows.map(({ port, host, reason, ...row }): EventDraft => {
          const shownTexts = { host: deps.redact(host), reason: deps.redact(reason) }
          const shownRow = { ...row, ...shownTexts, ...(port !== undefined && { port }) }
          return { type: 'NetworkAccess', source: 'environment', ...shownRow }
        }),
      ),
    )
    this.#proxy = new NetworkProxy({
      judge: (host, port, over) => this.#judge(host, port, over),
      isStillAllowed: ({ host, port, isApproved }) => {
        const { decision } = this.#decide(host, port)
        return decision === 'allow' || (decision === 'ask' && isApproved)
      },
      reach: deps.reach,
      permits: deps.createPermits(),
      onAccess: (access) => this.#noteAccess(access),
      redact: deps.redact,
    })
  }

  /** The network mode of new shells. */
  get mode(): NetworkMode {
    return effectivePolicy(this.#deps.policy(), this.#deps.server).mode
  }

  /** The policy of the conversation, under the effective mode. */
  get shown(): NetworkPolicy {
    const policy = this.#deps.policy() ?? this.#deps.server.default
    return this.mode === policy.mode ? policy : { mode: this.mode }
  }

  /** See `NetworkProxy.adopt`. */
  adopt(listener: Server): () => void {
    return this.#proxy.adopt(listener)
  }

  /**
   * Returns why the server must not ask for this address on behalf of the agent, as a clause; undefined when it may.
   * Can wait for a user.
   */
  async refusal(url: URL, signal: AbortSignal): Promise<string | undefined> {
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    const host = parseHost(url.hostname)
    if (!host) return 'it names no host'
    const judgement = await orAborted(this.#judge(host, port, signal), signal)
    const reason = judgement.allowed ? 'permitted' : judgement.reason
    this.#noteAccess({ host, port, outcome: judgement.allowed ? 'allowed' : 'denied', reason })
    return judgement.allowed ? undefined : `${judgement.reason}. ${judgement.advice}`.trim()
  }

  /** Ends connections that a changed policy does not permit any more. */
  recheck(): void {
    this.#proxy.recheck()
    this.#approvals.recheck((host, port) => {
      const { decision } = this.#decide(host, port)
      return decision === 'ask' ? undefined : decision
    })
  }

  /** The hosts that wait for a decision. */
  pending(): OpenRequestOf<'network'>[] {
    return this.#approvals.pending.map(({ id, host, port, at, deadline }) => ({
      kind: 'network',
      request_id: id,
      opened_at: at,
      deadline,
      tool_use_ids: [],
      payload: { host: this.#nameOf({ host }), port },
    }))
  }

  #nameOf({ host }: Pick<ApprovalRequest, 'host'>): string {
    return this.#deps.redact(formatHost(host))
  }

  /** Returns false if the request is not pending. Calls `changePolicy` for a decision that is to be remembered. */
  async decide(
    id: string,
    { behavior, remember, keyName }: DecideNetworkRequest & { readonly keyName: string | undefined },
    changePolicy: ChangePolicy,
  ): Promise<boolean> {
    const decision = { behavior, by: 'user', keyName } as const
    const isAnswered = await this.#approvals.answer(id, decision, async (request) => {
      // Change the policy first: the answer lets the connection continue.
      if (remember) await changePolicy((policy) => this.#withTarget(policy, request, behavior))
      await this.#deps.emit([endOf(id, decision)])
    })
    if (isAnswered && remember) this.recheck()
    return isAnswered
  }

  /** Resolves when the log has the ends of requests that nobody answered, as far as they can be stored. */
  async stored(): Promise<void> {
    await this.#emitted
  }

  close(): void {
    this.#log.flush()
    this.#approvals.close()
    this.#proxy.close()
  }

  #decide(host: Host, port: number) {
    const { own, ceiling } = effectivePolicy(this.#deps.policy(), this.#deps.server)
    return decide(own, ceiling, host, port)
  }

  async #judge(host: Host, port: number, signal: AbortSignal): Promise<Judgement> {
    const verdict = this.#decide(host, port)
    if (verdict.decision === 'allow') return { allowed: true, isApproved: false }
    const refuse = (reason: string, advice: string): Judgement => ({ allowed: false, reason, advice })
    if (verdict.decision === 'deny') return refuse(verdict.reason, verdict.isFinal ? '' : this.#howToAllow(host, port))
    const answer = await this.#approvals.request(host, port, signal)
    if (answer?.behavior === 'allow') return { allowed: true, isApproved: true }
    return refuse(
      answer ? ANSWERED[answer.by] : 'too many other hosts are waiting for a decision',
      this.#howToAllow(host, port),
    )
  }

  #howToAllow(host: Host, port: number): string {
    const target = this.#deps.redact(formatTarget(host, port))
    return `To allow it, the user adds "${target}" to network.allow of this conversation (PUT /conversations/{id}/config).`
  }

  #withTarget(
    policy: NetworkPolicy = this.#deps.server.default,
    { host, port }: ApprovalRequest,
    behavior: ApprovalDecision['behavior'],
  ): NetworkPolicy {
    const list = behavior === 'allow' ? 'allow' : 'deny'
    const entries = [...(policy[list] ?? []), formatTarget(host, port)]
    refuseSecretsIn({ 'remember: the host': entries.at(-1) }, this.#deps.redact)
    if (entries.length > MAX_ENTRIES) throw tooManyEntries(list)
    return { ...policy, [list]: entries }
  }

  #noteAnswer(request: ApprovalRequest, decision: ApprovalDecision): void {
    if (decision.by === 'closing') return // the next start of the server logs it
    this.#emit([endOf(request.id, decision)])
  }

  #noteAccess(access: ProxyAccess): void {
    this.#deps.onOutcome(access.outcome)
    if (this.#deps.policy()?.log) this.#log.add(access)
  }

  #emit(drafts: readonly EventDraft[]): void {
    this.#emitted = this.#deps.emit(drafts).catch(this.#deps.onFault)
  }
}

const tooManyEntries = (list: string) =>
  new Problem(
    'limit_reached',
    `network.${list} has at most ${MAX_ENTRIES} entries. Decide without remember, or remove some with PUT config.`,
  )

const ANSWERED: Readonly<Record<ApprovalDecision['by'], string>> = {
  user: 'the user did not allow it',
  timeout: 'no decision was made in time',
  policy: 'it is not on the allow list',
  gone: 'nothing waited for a decision any more',
  closing: 'it can no longer be decided',
}

const requestOf = ({ id, port, deadline }: ApprovalRequest, host: string, runId: string | undefined): EventDraft => ({
  type: 'RequestOpened',
  source: 'environment',
  ...(runId !== undefined && { run_id: runId }),
  kind: 'network',
  request_id: id,
  deadline,
  tool_use_ids: [],
  payload: { host, port },
})

function endOf(id: string, { behavior, by, keyName }: ApprovalDecision): EventDraft {
  const request = { kind: 'network' as const, request_id: id, tool_use_ids: [] }
  const answer = { type: 'RequestAnswered' as const, ...request, answer: { behavior } }
  if (by === 'user') return { ...answer, source: 'user', ...byKey(keyName) }
  if (by === 'policy') return { ...answer, source: 'environment', answered_by: by }
  return closing(request, by === 'gone' ? 'interrupted' : 'timeout')
}
