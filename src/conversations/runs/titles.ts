/**
 * The title that a model writes after the first answer, if the creation asked for one. It delays no run, and a failure
 * is only in the log of the server. A title that a client has set meanwhile stays.
 */
import type { EventDraft, EventOf } from '../../contract/events/event.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import type { StoredEvent } from '../../events/event-store.ts'
import type { Llm, LlmAnswer } from '../../llm/llm.ts'
import { leaveAnswer } from '../../llm/llm.ts'
import { withOtherModel } from '../../llm/other-model.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { LiveState } from '../live/live-state.ts'
import type { Settings } from '../../state/settings.ts'
import { MAX_ANSWER_CHARS, titleIn, titleRequest } from './title-request.ts'
import type { Inbox } from '../live/inbox.ts'

export type TitlesDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly actor: Pick<Inbox, 'enqueue'>
  readonly createLlm: (config: LlmConfig) => Llm
  readonly logger: Logger
}

const TIMEOUT_S = 120

export class Titles {
  readonly #deps: TitlesDeps
  readonly #abort = new AbortController()
  /** One attempt is made while the conversation is open. */
  #attempt: Promise<void> | undefined
  #isOver = true

  constructor(deps: TitlesDeps) {
    this.#deps = deps
    // It can only be asked for at the creation: other conversations have no reader for this.
    if (deps.state.current.settings.generate_title) deps.log.subscribe({ onEvents: (events) => this.#take(events) })
  }

  get isIdle(): boolean {
    return this.#isOver
  }

  /** Ends the request. Nothing is stored after this resolves. */
  async close(): Promise<void> {
    this.#abort.abort()
    await this.#attempt
  }

  #take(events: readonly StoredEvent[]): void {
    const { settings } = this.#deps.state.current
    if (this.#attempt || settings.title !== undefined || this.#abort.signal.aborted) return
    const answer = events.map(({ event }) => event).find(isWhole)
    if (!answer || hasSpentAll(this.#deps.state)) return
    this.#isOver = false
    this.#attempt = this.#write(settings, answer)
      .catch((error: unknown) => this.#report(error))
      .finally(() => (this.#isOver = true))
  }

  async #write({ llm_config, title_model }: Settings, answer: EventOf<'AssistantMessage'>): Promise<void> {
    const { log, state, actor, createLlm } = this.#deps
    const { signal } = this.#abort
    const first = await firstMessage(log, answer, state.current.rewound)
    const messageParts = first?.content ?? []
    const { text, ...spentCosts } = await answerTo(
      createLlm(cheap(llm_config, title_model)),
      { messageParts, answer },
      signal,
    )
    await actor.enqueue(async () => {
      signal.throwIfAborted()
      const isMissing = state.current.settings.title === undefined && (!first || holds(state.current.rewound, first))
      const title = isMissing ? titleIn(text) : undefined
      const draft: EventDraft = {
        type: 'ConfigUpdate',
        source: 'environment',
        changes: title ? { title } : {},
        ...spentCosts,
      }
      await log.append([draft])
    })
  }

  #report(error: unknown): void {
    const { logger, log } = this.#deps
    if (this.#abort.signal.aborted) return
    logger.debug({ err: error, conversation_id: log.conversationId }, 'no title could be generated')
  }
}

const isWhole = (event: StoredEvent['event']): event is EventOf<'AssistantMessage'> =>
  event.type === 'AssistantMessage' && !event.partial && event.parent_tool_use_id === undefined

function hasSpentAll({ current: { settings, costUsd = 0 } }: LiveState): boolean {
  return settings.max_budget_usd !== undefined && costUsd >= settings.max_budget_usd
}

/** No retries, and little reasoning: a title is not worth more. */
function cheap(config: LlmConfig, model = config.model ?? ''): LlmConfig {
  return {
    ...withOtherModel(config, model),
    ...(config.reasoning_effort !== undefined && config.reasoning_effort !== 'none' && { reasoning_effort: 'low' }),
    num_retries: 0,
    timeout: Math.min(config.timeout ?? TIMEOUT_S, TIMEOUT_S),
  }
}

/** Events read at a time. */
const PAGE = { limit: 100, maxBytes: 1024 * 1024 }

/** The first message that the answer has read, and that was neither withdrawn nor rewound: later ones can still be withdrawn. */
async function firstMessage(
  log: Pick<EventLog, 'read'>,
  { seq, read_through: readThrough = seq }: EventOf<'AssistantMessage'>,
  rewound: readonly RewoundSpan[],
): Promise<EventOf<'UserMessage'> | undefined> {
  const withdrawn = new Set<number>()
  for await (const { events } of readPages(log, { types: new Set(['MessageWithdrawn']), ...PAGE }))
    for (const { event } of events) if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
  for await (const { events } of readPages(log, { types: new Set(['UserMessage']), ...PAGE }))
    for (const { event } of events) {
      if (event.seq > readThrough) return undefined
      if (event.type === 'UserMessage' && !withdrawn.has(event.seq) && holds(rewound, event)) return event
    }
  return undefined
}

type TitleCosts = Pick<EventOf<'ConfigUpdate'>, 'model' | 'usage' | 'cost_usd'>

/** Ends an answer that does not end. Its usage is then unknown. */
async function answerTo(
  llm: Llm,
  words: Parameters<typeof titleRequest>[0],
  signal: AbortSignal,
): Promise<TitleCosts & { readonly text: string }> {
  const stream = llm.stream(titleRequest(words), signal)
  let chars = 0
  try {
    for (;;) {
      const next = await stream.next()
      if (next.done) return spentOn(next.value)
      if (next.value.kind !== 'retry') chars += next.value.text.length
      if (chars > MAX_ANSWER_CHARS) throw new Error('the answer is too long')
    }
  } finally {
    await leaveAnswer(stream)
  }
}

function spentOn({ text, model, usage, costUsd }: LlmAnswer): TitleCosts & { readonly text: string } {
  return { text, model, usage, ...(costUsd !== undefined && { cost_usd: costUsd }) }
}
