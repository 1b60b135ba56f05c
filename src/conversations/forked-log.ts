/**
 * The log of a forked conversation: the events of the original up to a point, and the events that bring the copy to
 * rest.
 */
import type { Event, EventDraft, EventOf } from '../contract/events/event.ts'
import type { ForkedFiles } from '../contract/events/forked-files.ts'
import type { EventLog } from '../events/event-log.ts'
import { findInLog, readPages } from '../events/read-pages.ts'
import { answerOpenCalls, endBackground, isWaiting, result, toStatus } from '../state/drafts.ts'
import { closeWithoutCall, closePermission } from '../state/request-drafts.ts'
import type { Settings } from '../state/settings.ts'
import type { State } from '../state/state.ts'
import { EMPTY_STATE, fold } from '../state/state.ts'
import { leaveTasks } from '../state/task-intents.ts'

type Log = Pick<EventLog, 'read' | 'conversationId'>

/** Limits for one read, in events and bytes. */
const PAGE = { limit: 256, maxBytes: 1024 * 1024 }

/**
 * Returns the last event up to `seq` after which a copy may begin. Calls belong to the answer that made them: if some
 * of them would be missing, the whole answer is left out.
 */
export async function findBorder(log: Log, seq: number): Promise<number> {
  let calls = 0
  for await (const { events } of readPages(log, { order: 'desc', beforeSeq: seq + 1, ...PAGE })) {
    for (const { event } of events) {
      if (event.type === 'AssistantMessage') return event.tool_use_ids.length > calls ? event.seq - 1 : seq
      if (event.type !== 'ToolUse') return seq
      calls++
    }
  }
  return seq
}

export type ForkPlan = {
  readonly log: Log
  /** The last event that is copied. */
  readonly throughSeq: number
  readonly id: string
  /** The workdirs of the original, as it is now, and of the copy. */
  readonly cwd: string
  readonly settings: Settings
  readonly files: ForkedFiles
  readonly now: number
}

export type ForkedLog = {
  readonly events: AsyncIterable<Event>
  /** Returns the closing events for the state of the copied events; call it after they are read. */
  readonly ending: () => EventDraft[]
}

export function createForkedLog(plan: ForkPlan): ForkedLog {
  let state = EMPTY_STATE
  let lastResult: EventOf<'Result'> | undefined

  async function* events(): AsyncGenerator<Event, void, void> {
    for await (const page of readPages(plan.log, { beforeSeq: plan.throughSeq + 1, ...PAGE })) {
      for (const { event } of page.events) {
        const own = ownEvent(event, plan.id)
        state = fold(state, own)
        if (own.type === 'Result' && !own.parent_tool_use_id) lastResult = own
        yield own
      }
    }
  }

  return { events: events(), ending: () => endingOf(state, plan, lastResult?.run_id) }
}

/** Returns the event for the copy: conversation ids become the copy's, and idempotency keys are removed. */
function ownEvent(event: Event, id: string): Event {
  const own = { ...event, conversation_id: id }
  switch (own.type) {
    case 'SystemInit': {
      // The directory belongs to the original: a copy that was damaged before the fork must not delete it.
      const { idempotency: _, made_workdir: __, ...options_summary } = own.options_summary
      return { ...own, session_id: id, options_summary }
    }
    case 'Result':
      return { ...own, session_id: id }
    case 'UserMessage': {
      const { idempotency_key: _, body_hash: hash, ...rest } = own
      // The copy knows the message by its id.
      return { ...rest, ...(own.client_message_id !== undefined && { body_hash: hash }) }
    }
    case 'TaskUpdate':
    case 'FileUpdate':
    case 'ClientEvent':
    case 'Rewound':
    case 'FilesRestored': {
      const { idempotency_key: _, body_hash: __, ...rest } = own
      return rest
    }
    default:
      return own
  }
}

/**
 * The copy never runs by itself: unfinished work of the original is answered or ended here, and continues in the
 * original.
 */
function endingOf(state: State, plan: ForkPlan, lastResultOf: string | undefined): EventDraft[] {
  const forkedFrom: EventDraft = {
    type: 'ForkedFrom',
    source: 'environment',
    from_conversation_id: plan.log.conversationId,
    from_seq: plan.throughSeq,
    from_cwd: plan.cwd,
    cwd: plan.settings.workdir,
    files: plan.files,
    options_summary: plan.settings,
  }
  const answers = [
    ...closePermission(state, 'forked', FORKED),
    ...answerOpenCalls(state, { type: 'interrupted', why: 'forked', message: FORKED }),
    ...endBackground(state, [], 'cancelled', FORKED),
  ]
  const atRest = [forkedFrom, ...answers, ...leaveTasks(state), ...closeWithoutCall(state, 'forked')]
  if (state.status !== 'running' && !isWaiting(state.status)) return atRest
  const hasResult = lastResultOf === state.run?.id
  return [...atRest, ...(hasResult ? [] : [result(state, 'paused', plan.now)]), toStatus(state, 'paused', 'forked')]
}

const FORKED = 'This conversation was forked while the call was open; its result belongs to the original only.'

const FORKED_FROM: ReadonlySet<string> = new Set(['ForkedFrom'])

/** Returns the event with which the fork begins to differ from its original; undefined if it is not one. */
export const findForkedFrom = async (log: Pick<EventLog, 'read'>): Promise<EventOf<'ForkedFrom'> | undefined> =>
  await findInLog(log, { order: 'desc', types: FORKED_FROM, limit: 1 }, ({ event }) =>
    event.type === 'ForkedFrom' ? event : undefined,
  )
