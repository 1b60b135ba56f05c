/** One session of an editor with version 2 of the protocol: a prompt is answered when the log has it, and steers what runs. */
import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  CreateElicitationRequest,
  PromptResponse,
  ReplayFrom,
  RequestPermissionRequest,
  SessionUpdate,
} from '@agentclientprotocol/sdk/experimental/v2'
import { RequestError } from '@agentclientprotocol/sdk/experimental/v2'
import type { ConversationView } from '../../contract/conversation.ts'
import type { Event } from '../../contract/events/event.ts'
import type { EditorEdge } from './editor-edge.ts'
import { withdrawnBy } from './editor-edge.ts'
import type { FollowedPlace } from './followed-session.ts'
import { FollowedSession } from './followed-session.ts'
import { partsOfPrompt } from './prompt-content.ts'
import { INTERNAL_ERROR } from './protocol-errors.ts'
import { ENDS_OF_SERVERS } from './turn.ts'
import { ProjectionV2 } from './projection-v2.ts'
import { StateReports } from './state-reports.ts'
import { blocksInVersion1, callInVersion2, inVersion2, textBlock } from './update-words.ts'

export type EditorPlaceV2 = FollowedPlace & { readonly client: AgentContext; readonly capabilities: ClientCapabilities }

export class EditorSessionV2 {
  readonly followed: FollowedSession
  readonly #place: EditorPlaceV2
  readonly #states: StateReports
  readonly #id: string
  /** How often it was cancelled. */
  #cancels = 0
  /** A prompt of this session is being worked on. */
  #isAsked = false
  #isReplaying = false
  readonly #whenIdle = new Set<() => void>()
  /** Why nothing more arrives. */
  #end: Error | undefined

  constructor(place: EditorPlaceV2, view: ConversationView) {
    this.#place = place
    this.#id = view.id
    this.#states = new StateReports(view.status)
    const projection = new ProjectionV2(view.workdir)
    const send = async (updates: readonly SessionUpdate[]) => await this.#send(updates)
    const edge = edgeOf(place, view.id, send, (event) => projection.take(event))
    this.followed = new FollowedSession(place, view, edge, {
      take: async (event) => await this.#take(event),
      fail: (error) => this.#fail(error),
    })
  }

  /** Shows the conversation from there, if it is given, and what its agent does now. Throws a `RequestError` for another place. */
  async resume(from: ReplayFrom | undefined): Promise<void> {
    const after = from && seqBefore(from)
    for await (const event of this.followed.history({ types: STATE_TYPES })) this.#states.take(event)
    this.#isReplaying = true
    if (after !== undefined) await this.followed.replay(after)
    this.#isReplaying = false
    await this.#send([this.#states.current])
  }

  /** Returns when the message is in the log. The agent reads it as soon as it can, also while it works. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const content = partsOfPrompt(blocksInVersion1(blocks))
    if (this.#end) throw this.#end
    const cancels = this.#cancels
    this.#isAsked = true
    const { event_id: messageId } = await this.followed.send(content)
    // The pause may have come before the message.
    if (cancels !== this.#cancels) await this.followed.pause()
    return { messageId }
  }

  /** Stops what runs, also if another client has started it. */
  async cancel(): Promise<void> {
    this.#cancels += 1
    this.#isAsked = false
    await this.followed.pause()
  }

  /** Cancels what is done in the session. Resolves when the editor knows its end. */
  async end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#states.isIdle || this.#end) resolve()
    else this.#whenIdle.add(resolve)
    await this.cancel()
    for (const agentId of this.#states.backgroundAgents)
      await this.followed.conversation.stopSubagent(agentId).catch(() => {}) // it has ended meanwhile
    await promise
  }

  /** Does not stop the agent. */
  close(): void {
    this.followed.close()
    this.#settle()
  }

  async #take(event: Event): Promise<void> {
    if (this.#continues(event)) return
    if (this.#states.take(event)) await this.#send([this.#states.current])
    if (this.#states.isIdle) this.#settle()
  }

  /** The process that ran the agent has ended, and this one continues the run, which has not ended. */
  #continues(event: Event): boolean {
    if (event.type !== 'StatusUpdate' || event.status !== 'paused' || !ENDS_OF_SERVERS.has(event.reason)) return false
    const { continueRun } = this.#place.host
    if (!this.#isAsked || !continueRun) return false
    void this.#continue(async () => await continueRun(this.followed.conversation, event.seq))
    return true
  }

  async #continue(run: () => Promise<unknown>): Promise<void> {
    try {
      await run()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #fail(reason: Error): void {
    this.#end = reason
    const { message } = reason
    const report: SessionUpdate = {
      sessionUpdate: 'state_update',
      state: 'idle',
      stopReason: 'error',
      error: { code: INTERNAL_ERROR, message },
      background: [],
    }
    void this.#send([report]).catch(() => {}) // the editor is gone
    this.#settle()
  }

  #settle(): void {
    for (const resolve of this.#whenIdle) resolve()
    this.#whenIdle.clear()
  }

  async #send(updates: readonly SessionUpdate[]): Promise<void> {
    for (const update of updates) {
      // Notices are of the moment.
      if (this.#isReplaying && update.sessionUpdate === 'notice') continue
      await this.#place.client.notify('session/update', { sessionId: this.#id, update })
    }
  }
}

/** What tells the state of a session besides its status. */
const STATE_TYPES = ['SubagentStart', 'Result', 'ErrorEvent'] as const

/** Returns the seq after which the events follow. The place itself is shown, too. */
function seqBefore(from: ReplayFrom): number {
  if (from.type === 'start') return 0
  const seq: unknown = 'seq' in from ? from.seq : undefined
  if (from.type === '_seq' && typeof seq === 'number' && Number.isSafeInteger(seq) && seq > 0) return seq - 1
  throw RequestError.invalidParams(undefined, 'replayFrom must be {"type": "start"}, or {"type": "_seq"} with a seq')
}

function edgeOf(
  { client, capabilities }: EditorPlaceV2,
  sessionId: string,
  send: (updates: readonly SessionUpdate[]) => Promise<void>,
  take: ProjectionV2['take'],
): EditorEdge {
  return {
    showsForms: (capabilities.elicitation?.form ?? undefined) !== undefined,
    show: async (event) => await send(take(event)),
    send: async (updates) => await send(updates.flatMap(inVersion2)),
    async tell(text) {
      const content = [textBlock(text)]
      await send([{ sessionUpdate: 'agent_message', messageId: crypto.randomUUID(), content }])
    },
    async choose({ toolCall, options }, signal) {
      const subject = { type: 'tool_call', toolCall: callInVersion2(toolCall) } as const
      const params: RequestPermissionRequest = { sessionId, title: toolCall.title, subject, options }
      const { outcome } = await client.request('session/request_permission', params, withdrawnBy(signal))
      return outcome.outcome === 'selected' && 'optionId' in outcome ? String(outcome.optionId) : undefined
    },
    async fillIn({ toolCallId, ...form }, signal) {
      const ofCall = toolCallId !== undefined && { toolCallId }
      const params: CreateElicitationRequest = { sessionId, ...ofCall, mode: 'form', ...form }
      const reply = await client.request('elicitation/create', params, withdrawnBy(signal))
      return reply.action === 'accept' && 'content' in reply ? Object(reply.content) : undefined
    },
  }
}
