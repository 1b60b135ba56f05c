/** How a client's message gets into the conversation: past its hooks, with its slash command, redacted, and once. */
import type { MessageInput, UserInput } from '../contract/values/message.ts'
import { messageOf, partsOf } from '../contract/values/message.ts'
import { Problem } from '../contract/problem.ts'
import type { PostedMessage, PostMessage, RunOptions } from '../contract/run.ts'
import type { EventLog } from '../events/event-log.ts'
import type { PromptHooks } from '../state/hook-decisions.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { ModelCatalog } from '../llm/catalog/model-catalog.ts'
import type { ConversationActor } from './actor.ts'
import { checkOutputSchema } from './config/check-output-schema.ts'
import { redactLongParts } from './config/redact-parts.ts'
import type { Feature } from './agents/feature.ts'
import type { ConversationHooks } from './hooks/conversation-hooks.ts'
import type { ClientMessage, Idempotency, PostedKey } from '../state/idempotency.ts'
import { answerTo, findEarlier } from '../state/idempotency.ts'
import { refuseRewound } from '../state/refusals.ts'
import type { RequestedRun } from '../state/drafts.ts'
import { postOnce } from '../idempotency/posted-keys.ts'
import { findPostedMessage } from '../idempotency/posted-message.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import type { PostedCommand, PostedCommands } from './project/posted-commands.ts'
import { requestedRun } from './runs/requested-run.ts'
import type { LiveState } from './live/live-state.ts'

type MessagePostsParts = {
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly hooks: Feature<ConversationHooks>
  readonly postedCommands: PostedCommands
  readonly redactor: Redactor
  readonly models: { readonly catalog: ModelCatalog }
}

type QueuedPost = {
  readonly message: UserInput
  readonly run: boolean
  readonly afterSeq?: number | undefined
  readonly wish?: RequestedRun | undefined
  readonly prepare?: PostSteps['prepare']
  readonly clientMessage?: ClientMessage | undefined
}

/** `isKnown`: the conversation had a message with the id of the client, and nothing was stored. */
export type MessageAnswer = PostedMessage & { readonly isKnown?: true }

/**
 * `prepare`: what is to be done before the message is stored, when its options are valid and its hooks let it pass. If it throws, nothing is
 * stored. `promptHooks`: what the hooks have said, if they were asked before. `clientMessage`: the id of the client.
 */
export type PostSteps = {
  readonly prepare?: (() => Promise<void>) | undefined
  readonly promptHooks?: PromptHooks | undefined
  readonly clientMessage?: ClientMessage | undefined
}

/** What is stored with the message. */
type AddedToMessage = { readonly slashCommand?: PostedCommand; readonly hooks?: PromptHooks }

export class MessagePosts {
  readonly #log: EventLog
  readonly #parts: MessagePostsParts

  constructor(log: EventLog, parts: MessagePostsParts) {
    this.#log = log
    this.#parts = parts
  }

  /** Idempotent: the same key and body within a day returns the earlier response, and the message is posted once. */
  async post(
    request: PostMessage,
    idempotency?: Idempotency,
    { prepare, promptHooks, clientMessage }: PostSteps = {},
  ): Promise<MessageAnswer> {
    const { state } = this.#parts
    const { message, run, run_options: options, after_seq: afterSeq } = request
    const hooks = this.#parts.hooks.current
    const asksHooks = !promptHooks && hooks?.readsPrompts() === true
    // Neither is asked about a repeated request.
    const key = options !== undefined || asksHooks ? idempotency : undefined
    const findAnswer = async () =>
      (clientMessage && (await this.#findKnown(messageOf(message), clientMessage))) ??
      (key && findEarlier(state.current.postedKeys, key, Date.now())?.answer)
    const earlierAnswer = (clientMessage ?? key) && (await findAnswer())
    if (earlierAnswer) return earlierAnswer
    const wish = options && (await this.#checkOptions(options, run))
    const queuedPost = { message: messageOf(message), run, afterSeq, wish, prepare, clientMessage }
    if (!asksHooks) {
      // Project settings alone have slash commands.
      if (!state.current.settings.project_settings)
        return await this.#post(queuedPost, idempotency, { ...(promptHooks && { hooks: promptHooks }) })
      return await this.#postWithCommand(queuedPost, idempotency, promptHooks)
    }
    // This is out of turn, because hooks may take long.
    const content = partsOf(queuedPost.message.content)
    const post = (hooksAnswer: PromptHooks) => this.#postWithCommand(queuedPost, idempotency, hooksAnswer)
    return await hooks.withPrompt(content, post, findAnswer)
  }

  async #findKnown(message: UserInput, clientMessage: ClientMessage): Promise<MessageAnswer | undefined> {
    const event = await findPostedMessage(this.#log, this.#parts.state.current, clientMessage, message)
    return event && { ...answerTo(event), isKnown: true }
  }

  /** Calls the hooks for the message that a conversation begins with. Throws a `Problem` if one blocks it. */
  async checkFirst(message: MessageInput | undefined, signal: AbortSignal): Promise<PromptHooks | undefined> {
    const hooks = this.#parts.hooks.current
    return message && hooks?.readsPrompts()
      ? await hooks.checkFirst(partsOf(messageOf(message).content), signal)
      : undefined
  }

  /**
   * Calls the hooks for a message that is posted later, with what they say. Throws the `Problem` `blocked_by_hook`. Undefined if there
   * are none.
   */
  async askHooks(message: UserInput): Promise<PromptHooks | undefined> {
    const hooks = this.#parts.hooks.current
    if (!hooks?.readsPrompts()) return undefined
    return await hooks.withPrompt(partsOf(message.content), async (hooksAnswer) => hooksAnswer)
  }

  async #checkOptions(options: RunOptions, run: boolean): Promise<RequestedRun> {
    const { state, models, redactor } = this.#parts
    if (!run) throw new Problem('invalid_request', 'run_options need run: true.')
    if (options.output_schema) await checkOutputSchema(options.output_schema)
    return requestedRun(options, state.current.settings, { ...models, redact: redactor.redact })
  }

  #postWithCommand(queuedPost: QueuedPost, idempotency?: Idempotency, hooks?: PromptHooks): Promise<MessageAnswer> {
    const content = partsOf(queuedPost.message.content)
    const marks = { idempotency, clientMessage: queuedPost.clientMessage }
    return this.#parts.postedCommands.post(content, marks, (slashCommand) =>
      this.#post(queuedPost, idempotency, { ...(slashCommand && { slashCommand }), ...(hooks && { hooks }) }),
    )
  }

  async #post(
    queuedPost: QueuedPost,
    idempotency: Idempotency | undefined,
    addition: AddedToMessage,
  ): Promise<MessageAnswer> {
    const { actor, state, redactor } = this.#parts
    const { prepare, message, clientMessage } = queuedPost
    if (prepare) await prepare()
    const make = () => this.#store(queuedPost, idempotency, addition)
    if (!idempotency && !clientMessage) return await actor.enqueue(make)
    const { redact } = redactor
    const again = async ({ answer }: PostedKey) => answer
    return await actor.enqueue(async () => {
      // Another request with the same id can have come first.
      const knownMessage = clientMessage && (await this.#findKnown(message, clientMessage))
      if (knownMessage) return knownMessage
      return await postOnce(idempotency, { log: this.#log, redact, remembered: state.current.postedKeys, again, make })
    })
  }

  /** Stores the message. Call it in turn only. */
  async #store(
    { message, run, afterSeq, wish, clientMessage }: QueuedPost,
    idempotency: Idempotency | undefined,
    addition: AddedToMessage,
  ): Promise<PostedMessage> {
    const { actor, redactor, state } = this.#parts
    if (afterSeq !== undefined) refuseRewound(state.current, afterSeq)
    if (clientMessage) refuseSecretsIn({ client_message_id: clientMessage.id }, redactor.redact)
    const content = await redactLongParts(partsOf(message.content), redactor.redactInSlices)
    const sender = message.sender === undefined ? {} : { sender: redactor.redact(message.sender) }
    const begin = { run, ...(wish && { requestedRun: wish }), begun: actor.begunCalls(), newRunId: uuid7() }
    const intent = { kind: 'message', content, ...sender, ...addition, ...begin, now: Date.now() } as const
    const once = { ...(idempotency && { idempotency }), ...(clientMessage && { clientMessage }) }
    const events = await actor.apply({ ...intent, ...once })
    for (const event of events) if (event.type === 'UserMessage') return answerTo(event)
    throw new Error('A message was stored without its event.')
  }
}
