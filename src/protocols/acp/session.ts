/** One session of an editor with version 1 of the protocol: a prompt is answered when its run has ended. */
import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  CreateElicitationRequest,
  PromptResponse,
  RequestPermissionRequest,
  SessionUpdate,
} from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import type { ConversationView } from '../../contract/conversation.ts'
import type { EditorEdge } from './editor-edge.ts'
import { withdrawnBy } from './editor-edge.ts'
import type { FollowedPlace } from './followed-session.ts'
import { FollowedSession } from './followed-session.ts'
import { chunk, Projection } from './projection.ts'
import { partsOfPrompt } from './prompt-content.ts'
import { PromptTurn } from './turn.ts'

export type EditorPlace = FollowedPlace & { readonly client: AgentContext; readonly capabilities: ClientCapabilities }

export class EditorSession {
  readonly followed: FollowedSession
  readonly #place: EditorPlace
  /** Idempotency keys of the messages that this session has sent. */
  readonly #own = new Set<string>()
  #turn: PromptTurn | undefined
  /** Resolves when the prompt of the turn has its answer. */
  #answered: Promise<void> = Promise.resolve()
  /** Why nothing more arrives. */
  #end: Error | undefined

  constructor(place: EditorPlace, view: ConversationView) {
    this.#place = place
    const projection = new Projection({
      workdir: view.workdir,
      isOwn: ({ idempotency_key: key }) => key !== undefined && this.#own.has(key),
      showsNotices: (place.capabilities.session?.notices ?? undefined) !== undefined,
    })
    this.followed = new FollowedSession(place, view, edgeOf(place, view.id, projection), {
      take: (event) => this.#turn?.take(event),
      fail: (error) => {
        this.#end = error
        this.#turn?.fail(error)
      },
    })
  }

  /** Throws a `RequestError` while another prompt is answered. After `cancel` the next one waits for its end. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const content = partsOfPrompt(blocks)
    while (this.#turn) {
      if (!this.#turn.isCancelled)
        throw RequestError.invalidRequest(undefined, 'this session answers a prompt; wait for its end, or cancel it')
      await this.#answered
    }
    if (this.#end) throw this.#end
    const { conversation } = this.followed
    const turn = new PromptTurn({
      canAnswer: showsForms(this.#place),
      onCutOff: (after) => this.#place.host.continueRun?.(conversation, after),
    })
    this.#turn = turn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#answered = promise
    try {
      const idempotencyKey = crypto.randomUUID()
      this.#own.add(idempotencyKey)
      const { seq, run_id } = await this.followed.send(content, { idempotencyKey })
      turn.begin(seq, run_id)
      // The pause may have come before the message.
      if (turn.isCancelled) await this.followed.pause()
      return await turn.ended
    } finally {
      this.#turn = undefined
      resolve()
    }
  }

  /** Stops what runs, also if another client has started it. */
  async cancel(): Promise<void> {
    const turn = this.#turn
    if (turn) turn.isCancelled = true
    await this.followed.pause().catch((error: unknown) => {
      if (!turn) throw error
      turn.fail(error)
    })
  }

  /** Does not stop the agent. */
  close(): void {
    this.followed.close()
    this.#turn?.fail(RequestError.invalidRequest(undefined, 'the session was closed'))
  }
}

const showsForms = ({ capabilities }: EditorPlace): boolean =>
  (capabilities.elicitation?.form ?? undefined) !== undefined

function edgeOf(place: EditorPlace, sessionId: string, projection: Projection): EditorEdge {
  const { client } = place
  const send = async (updates: readonly SessionUpdate[]): Promise<void> => {
    for (const update of updates) await client.notify('session/update', { sessionId, update })
  }
  return {
    showsForms: showsForms(place),
    show: async (event) => await send(projection.take(event)),
    send,
    tell: async (text) => await send(chunk('agent_message_chunk', crypto.randomUUID(), text)),
    async choose(decision, signal) {
      const params: RequestPermissionRequest = { sessionId, ...decision }
      const { outcome } = await client.request('session/request_permission', params, withdrawnBy(signal))
      return outcome.outcome === 'selected' ? outcome.optionId : undefined
    },
    async fillIn({ toolCallId, ...form }, signal) {
      const ofCall = toolCallId !== undefined && { toolCallId }
      const params: CreateElicitationRequest = { sessionId, ...ofCall, mode: 'form', ...form }
      const reply = await client.request('elicitation/create', params, withdrawnBy(signal))
      return reply.action === 'accept' ? Object(reply.content) : undefined
    },
  }
}
