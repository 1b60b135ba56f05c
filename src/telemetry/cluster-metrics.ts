/** The metrics of a server whose conversations are in a database. */
import type { Instrument } from './instruments.ts'
import { createCounter, createTimer } from './instruments.ts'

/** Seconds. */
const STATEMENTS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30]

export class ClusterMetrics {
  readonly #statements = createTimer({
    name: 'agent_server_database_seconds',
    help: 'From a statement to the answer of the database, without the wait for a connection; kind is append, cache or other.',
    labels: ['kind'],
    bounds: STATEMENTS,
  })
  readonly #fenced = createCounter({
    name: 'agent_server_fenced_appends_total',
    help: 'Appends that were refused because another instance has taken the conversation over.',
  })
  readonly #suspensions = createCounter({
    name: 'agent_server_suspensions_total',
    help: 'Times that this instance could not renew its lease and began nothing until it could.',
  })
  readonly #takeovers = createCounter({
    name: 'agent_server_takeovers_total',
    help: 'Conversations that this instance took over from one that had died.',
  })
  readonly #forwards = createCounter({
    name: 'agent_server_forwards_total',
    help: 'Requests that were sent to other instances; outcome is answered or failed.',
    labels: ['outcome'],
  })

  readonly instruments: readonly Instrument[] = [
    this.#statements,
    this.#fenced,
    this.#suspensions,
    this.#takeovers,
    this.#forwards,
  ]

  readonly databaseAnswered = (kind: string, ms: number): void => this.#statements.observe([kind], ms)

  readonly fenced = (): void => this.#fenced.add([])

  readonly suspended = (): void => this.#suspensions.add([])

  readonly tookOver = (): void => this.#takeovers.add([])

  readonly forwarded = (outcome: 'answered' | 'failed'): void => this.#forwards.add([outcome])
}
