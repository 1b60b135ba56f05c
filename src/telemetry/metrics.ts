/** The metrics of this server, and the plain functions that others report with. `exposition.ts` formats them. */
import type { Instrument, Sample } from './instruments.ts'
import { createCounter, createReadout, createTimer } from './instruments.ts'

export type StreamKind = 'sse' | 'websocket'

/** Reported by what does the work; each call costs an addition or two, and none of them throws. */
export type Metrics = {
  readonly runStarted: () => void
  readonly runEnded: (stopReason: string) => void
  readonly step: (model: string, tokens: Tokens) => void
  readonly stepOverhead: (ms: number) => void
  /** `firstDeltaMs` is undefined when the model said nothing. */
  readonly modelAnswered: (answer: {
    readonly model: string
    readonly outcome: string
    readonly firstDeltaMs: number | undefined
    readonly ms: number
  }) => void
  readonly toolCalled: (tool: string, outcome: string) => void
  readonly appended: (ms: number) => void
  /** Answers what to call, once, when the stream is over. */
  readonly streamOpened: (kind: StreamKind) => (end: { readonly lagged: boolean }) => void
  readonly keyRefused: () => void
  /** Of a connection that a command asked the network proxy for. */
  readonly networkDecided: (outcome: string) => void
  readonly answered: (status: number) => void
  /** What is read when somebody looks; a name that is watched again is read from the later source. */
  readonly watch: (sources: Partial<Sources>) => void
  readonly instruments: readonly Instrument[]
}

export type Tokens = {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cached_tokens: number
  readonly reasoning_tokens: number
}

export type Sources = {
  readonly conversationsByStatus: () => Readonly<Record<string, number>>
  readonly activeRuns: () => number
  readonly queuedRuns: () => number
  /** Attempts to deliver so far, by outcome. */
  readonly callbackAttempts: () => Readonly<Record<string, number>>
  readonly callbacksUnderWay: () => number
  /** Age of the oldest event that a callback could not be given yet, milliseconds; 0 without one. */
  readonly callbackWaitMs: () => number
}

/** Seconds. What a server does by itself takes milliseconds at most; what a model does, seconds to minutes. */
const OWN_WORK = [0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const MODEL_WORK = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

/** Names of models are the clients' choice: so many are told apart. */
const MAX_MODELS = 50

export function createMetrics(): Metrics {
  const runsStarted = createCounter({ name: 'agent_server_runs_started_total', help: 'Runs that began.' })
  const runsEnded = createCounter({
    name: 'agent_server_runs_ended_total',
    help: 'Runs that came to an end, by the stop_reason of their Result.',
    labels: ['stop_reason'],
  })
  const steps = createCounter({ name: 'agent_server_steps_total', help: 'Answers of models that were stored.' })
  const tokens = createCounter({
    name: 'agent_server_llm_tokens_total',
    help: 'Tokens as providers counted them; cached ones are part of the input, reasoning ones of the output.',
    labels: ['model', 'kind'],
    maxSeries: 4 * MAX_MODELS,
  })
  const overhead = createTimer({
    name: 'agent_server_step_overhead_seconds',
    help: 'What the server itself takes between two answers of a run: from the end of one, before it is redacted and stored, to the moment the next request is handed to the model client, less the duration_ms of the tool calls in between. Times in which a run waited for somebody, or was paused, are left out.',
    bounds: OWN_WORK,
  })
  const firstDelta = createTimer({
    name: 'agent_server_llm_first_delta_seconds',
    help: 'From a request to a model to the first piece of its answer, retries included.',
    labels: ['model'],
    maxSeries: MAX_MODELS,
    bounds: MODEL_WORK,
  })
  const answers = createTimer({
    name: 'agent_server_llm_answer_seconds',
    help: 'From a request to a model to the end of its answer, retries included; outcome is answered, aborted, or the type of the error.',
    labels: ['model', 'outcome'],
    maxSeries: 2 * MAX_MODELS,
    bounds: MODEL_WORK,
  })
  const toolCalls = createCounter({
    name: 'agent_server_tool_calls_total',
    help: 'Tool calls that got their result; outcome is ok, or the error_type of the result.',
    labels: ['tool', 'outcome'],
  })
  const appends = createTimer({
    name: 'agent_server_append_seconds',
    help: 'From an append to an event log until it is durable.',
    bounds: OWN_WORK,
  })
  const open: Record<StreamKind, number> = { sse: 0, websocket: 0 }
  const lagged = createCounter({
    name: 'agent_server_streams_lagged_total',
    help: 'Streams that were cut off because their reader was too slow.',
    labels: ['kind'],
  })
  const refusedKeys = createCounter({ name: 'agent_server_refused_keys_total', help: 'Requests without a right key.' })
  const connections = createCounter({
    name: 'agent_server_network_connections_total',
    help: 'Connections that commands asked the network proxy for; outcome is allowed, denied or failed.',
    labels: ['outcome'],
  })
  const requests = createCounter({
    name: 'agent_server_http_requests_total',
    help: 'Answers to HTTP requests, by the first digit of their status.',
    labels: ['status'],
  })

  let sources: Partial<Sources> = {}
  const gauge = (name: string, help: string, read: () => number | Sample[]) =>
    createReadout({ name, help, type: 'gauge' }, read)
  const byLabel = (label: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([value, count]) => ({ labels: { [label]: value }, value: count }))

  return {
    runStarted: () => runsStarted.add([]),
    runEnded: (stopReason) => runsEnded.add([stopReason]),
    step(model, { input_tokens, output_tokens, cached_tokens, reasoning_tokens }) {
      steps.add([])
      tokens.add([model, 'input'], input_tokens)
      tokens.add([model, 'output'], output_tokens)
      tokens.add([model, 'cached'], cached_tokens)
      tokens.add([model, 'reasoning'], reasoning_tokens)
    },
    stepOverhead: (ms) => overhead.observe([], ms),
    modelAnswered({ model, outcome, firstDeltaMs, ms }) {
      if (firstDeltaMs !== undefined) firstDelta.observe([model], firstDeltaMs)
      answers.observe([model, outcome], ms)
    },
    toolCalled: (tool, outcome) => toolCalls.add([tool, outcome]),
    appended: (ms) => appends.observe([], ms),
    streamOpened(kind) {
      open[kind]++
      return (end) => {
        open[kind]--
        if (end.lagged) lagged.add([kind])
      }
    },
    keyRefused: () => refusedKeys.add([]),
    networkDecided: (outcome) => connections.add([outcome]),
    answered: (status) => requests.add([STATUS_CLASSES[Math.floor(status / 100)] ?? OTHER_STATUS]),
    watch: (more) => void (sources = { ...sources, ...more }),
    instruments: [
      gauge('agent_server_conversations', 'Conversations there are, by status.', () =>
        byLabel('status', sources.conversationsByStatus?.() ?? {}),
      ),
      runsStarted,
      runsEnded,
      gauge('agent_server_runs_active', 'Runs that work now.', () => sources.activeRuns?.() ?? 0),
      gauge(
        'agent_server_runs_queued',
        'Runs that wait for OPENHANDS_MAX_CONCURRENT_RUNS to let them work.',
        () => sources.queuedRuns?.() ?? 0,
      ),
      steps,
      overhead,
      firstDelta,
      answers,
      tokens,
      toolCalls,
      appends,
      gauge('agent_server_streams', 'Streams that are open.', () => byLabel('kind', open)),
      lagged,
      createReadout(
        {
          name: 'agent_server_callback_attempts_total',
          help: 'Attempts to deliver an event to a callback, by outcome.',
          type: 'counter',
        },
        () => byLabel('outcome', sources.callbackAttempts?.() ?? {}),
      ),
      gauge(
        'agent_server_callback_attempts_under_way',
        'Attempts that wait for an answer.',
        () => sources.callbacksUnderWay?.() ?? 0,
      ),
      gauge(
        'agent_server_callback_queue_age_seconds',
        'Age of the oldest event that a callback could not be given yet; 0 without one.',
        () => (sources.callbackWaitMs?.() ?? 0) / 1000,
      ),
      refusedKeys,
      connections,
      requests,
    ],
  }
}

const STATUS_CLASSES: readonly (string | undefined)[] = [undefined, '1xx', '2xx', '3xx', '4xx', '5xx']
const OTHER_STATUS = 'other'
