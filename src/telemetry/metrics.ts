/** The metrics of this server, and the functions that report them. `exposition.ts` formats them. */
import type { ServerActivity } from '../contract/server.ts'
import type { ClusterMetrics } from './cluster-metrics.ts'
import type { Instrument, Sample } from './instruments.ts'
import { createCounter, createReadout, createTimer } from './instruments.ts'

export type StreamKind = 'sse' | 'websocket'

export type ModelAnswered = {
  readonly model: string
  readonly outcome: string
  /** Undefined if the model sent nothing. */
  readonly firstDeltaMs: number | undefined
  readonly ms: number
}

export type Tokens = {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cached_tokens: number
  readonly reasoning_tokens: number
}

export type Sources = {
  readonly conversationsByStatus: () => Readonly<Record<string, number>>
  readonly openConversations: () => number
  readonly activeRuns: () => number
  readonly queuedRuns: () => number
  /** Delivery attempts so far, by outcome. */
  readonly callbackAttempts: () => Readonly<Record<string, number>>
  readonly activeCallbacks: () => number
  /** Age of the oldest event not yet delivered to a callback, in milliseconds; 0 if there is none. */
  readonly callbackWaitMs: () => number
}

/** Seconds. The server's own work takes milliseconds at most; a model's, seconds to minutes. */
const OWN_WORK = [0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const MODEL_WORK = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

/** Clients choose the names of models: only this many are distinguished. */
const MAX_MODELS = 50

/** Called by the code that does the work. Each call costs an addition or two, and never throws. */
export class Metrics {
  readonly #runsStarted = createCounter({ name: 'agent_server_runs_started_total', help: 'Runs that began.' })
  readonly #runsEnded = createCounter({
    name: 'agent_server_runs_ended_total',
    help: 'Runs that came to an end, by the stop_reason of their Result.',
    labels: ['stop_reason'],
  })
  readonly #steps = createCounter({ name: 'agent_server_steps_total', help: 'Answers of models that were stored.' })
  readonly #tokens = createCounter({
    name: 'agent_server_llm_tokens_total',
    help: 'Tokens as providers counted them; cached ones are part of the input, reasoning ones of the output.',
    labels: ['model', 'kind'],
    maxSeries: 4 * MAX_MODELS,
  })
  readonly #overhead = createTimer({
    name: 'agent_server_step_overhead_seconds',
    help: 'What the server itself takes between two answers of a run: from the end of one, before it is redacted and stored, to the moment the next request is handed to the model client, less the duration_ms of the tool calls in between. Times in which a run waited for somebody, or was paused, are left out.',
    bounds: OWN_WORK,
  })
  readonly #firstDelta = createTimer({
    name: 'agent_server_llm_first_delta_seconds',
    help: 'From a request to a model to the first piece of its answer, retries included.',
    labels: ['model'],
    maxSeries: MAX_MODELS,
    bounds: MODEL_WORK,
  })
  readonly #answers = createTimer({
    name: 'agent_server_llm_answer_seconds',
    help: 'From a request to a model to the end of its answer, retries included; outcome is answered, aborted, or the type of the error.',
    labels: ['model', 'outcome'],
    maxSeries: 2 * MAX_MODELS,
    bounds: MODEL_WORK,
  })
  readonly #toolCalls = createCounter({
    name: 'agent_server_tool_calls_total',
    help: 'Tool calls that got their result; outcome is ok, or the error_type of the result.',
    labels: ['tool', 'outcome'],
  })
  readonly #appends = createTimer({
    name: 'agent_server_append_seconds',
    help: 'From an append to an event log until it is durable.',
    bounds: OWN_WORK,
  })
  readonly #snapshots = createTimer({
    name: 'agent_server_snapshot_seconds',
    help: 'From the beginning of a snapshot of a workdir to its end; outcome is taken or failed. An unchanged tree counts, too.',
    labels: ['outcome'],
    bounds: OWN_WORK,
  })
  readonly #open: Record<StreamKind, number> = { sse: 0, websocket: 0 }
  readonly #lagged = createCounter({
    name: 'agent_server_streams_lagged_total',
    help: 'Streams that were cut off because their reader was too slow.',
    labels: ['kind'],
  })
  readonly #refusedKeys = createCounter({
    name: 'agent_server_refused_keys_total',
    help: 'Requests without a right key.',
  })
  readonly #connections = createCounter({
    name: 'agent_server_network_connections_total',
    help: 'Connections that commands asked the network proxy for; outcome is allowed, denied or failed.',
    labels: ['outcome'],
  })
  readonly #requests = createCounter({
    name: 'agent_server_http_requests_total',
    help: 'Answers to HTTP requests, by the first digit of their status.',
    labels: ['status'],
  })
  /** Undefined without a database. */
  cluster: ClusterMetrics | undefined
  #sources: Partial<Sources> = {}

  readonly runStarted = (): void => this.#runsStarted.add([])

  readonly runEnded = (stopReason: string): void => this.#runsEnded.add([stopReason])

  readonly step = (model: string, tokens: Tokens): void => {
    this.#steps.add([])
    this.#tokens.add([model, 'input'], tokens.input_tokens)
    this.#tokens.add([model, 'output'], tokens.output_tokens)
    this.#tokens.add([model, 'cached'], tokens.cached_tokens)
    this.#tokens.add([model, 'reasoning'], tokens.reasoning_tokens)
  }

  readonly stepOverhead = (ms: number): void => this.#overhead.observe([], ms)

  readonly modelAnswered = ({ model, outcome, firstDeltaMs, ms }: ModelAnswered): void => {
    if (firstDeltaMs !== undefined) this.#firstDelta.observe([model], firstDeltaMs)
    this.#answers.observe([model, outcome], ms)
  }

  readonly toolCalled = (tool: string, outcome: string): void => this.#toolCalls.add([tool, outcome])

  readonly appended = (ms: number): void => this.#appends.observe([], ms)

  readonly snapshotTaken = (outcome: 'taken' | 'failed', ms: number): void => this.#snapshots.observe([outcome], ms)

  /** Returns a function to call once, when the stream has ended. */
  readonly streamOpened = (kind: StreamKind): ((end: { readonly lagged: boolean }) => void) => {
    this.#open[kind]++
    return (end) => {
      this.#open[kind]--
      if (end.lagged) this.#lagged.add([kind])
    }
  }

  readonly keyRefused = (): void => this.#refusedKeys.add([])

  /** Reports a connection that a command requested from the network proxy. */
  readonly networkDecided = (outcome: string): void => this.#connections.add([outcome])

  readonly answered = (status: number): void =>
    this.#requests.add([STATUS_CLASSES[Math.floor(status / 100)] ?? OTHER_STATUS])

  /** Adds sources that are read with each scrape; a source of the same name is replaced. */
  readonly watch = (more: Partial<Sources>): void => void (this.#sources = { ...this.#sources, ...more })

  get activity(): ServerActivity {
    const { activeRuns, queuedRuns } = this.#sources
    return { active_runs: activeRuns?.() ?? 0, queued_runs: queuedRuns?.() ?? 0, streams: { ...this.#open } }
  }

  /** The instruments in the order of the output. */
  get instruments(): readonly Instrument[] {
    return [
      gauge('agent_server_conversations', 'Conversations there are, by status.', () =>
        byLabel('status', this.#sources.conversationsByStatus?.() ?? {}),
      ),
      gauge(
        'agent_server_conversations_open',
        'Conversations that are held in memory.',
        () => this.#sources.openConversations?.() ?? 0,
      ),
      this.#runsStarted,
      this.#runsEnded,
      gauge('agent_server_runs_active', 'Runs that work now.', () => this.#sources.activeRuns?.() ?? 0),
      gauge(
        'agent_server_runs_queued',
        'Runs that wait for OPENHANDS_MAX_CONCURRENT_RUNS to let them work.',
        () => this.#sources.queuedRuns?.() ?? 0,
      ),
      this.#steps,
      this.#overhead,
      this.#firstDelta,
      this.#answers,
      this.#tokens,
      this.#toolCalls,
      this.#appends,
      this.#snapshots,
      gauge('agent_server_streams', 'Streams that are open.', () => byLabel('kind', this.#open)),
      this.#lagged,
      createReadout(
        {
          name: 'agent_server_callback_attempts_total',
          help: 'Attempts to deliver an event to a callback, by outcome.',
          type: 'counter',
        },
        () => byLabel('outcome', this.#sources.callbackAttempts?.() ?? {}),
      ),
      gauge(
        'agent_server_callback_attempts_under_way',
        'Attempts that wait for an answer.',
        () => this.#sources.activeCallbacks?.() ?? 0,
      ),
      gauge(
        'agent_server_callback_queue_age_seconds',
        'Age of the oldest event that a callback could not be given yet; 0 without one.',
        () => (this.#sources.callbackWaitMs?.() ?? 0) / 1000,
      ),
      this.#refusedKeys,
      this.#connections,
      this.#requests,
      ...(this.cluster?.instruments ?? []),
    ]
  }
}

const gauge = (name: string, help: string, read: () => number | Sample[]): Instrument =>
  createReadout({ name, help, type: 'gauge' }, read)

const byLabel = (label: string, counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([value, count]) => ({ labels: { [label]: value }, value: count }))

const STATUS_CLASSES: readonly (string | undefined)[] = [undefined, '1xx', '2xx', '3xx', '4xx', '5xx']
const OTHER_STATUS = 'other'
