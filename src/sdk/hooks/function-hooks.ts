/**
 * The hooks of a query that are functions, where the server is in another process: they are registered there, and the
 * server asks for their answers while the query lasts.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { BodyOf } from '../../client/operations/operations.ts'
import type { ClientHookPoints, HookRequest } from '../../contract/hooks/client-hooks.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import { MAX_HOOKS_IN_GROUP } from '../../contract/hooks/hooks.ts'
import { orAborted, withinTime } from '../../lib/bounded-wait.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { messageOf, OpenWork } from '../answers/responder.ts'
import { invalid } from '../errors/invalid.ts'
import type { FunctionHook } from '../options/hooks-option.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { AttachedHooks } from './attached-hooks.ts'
import { QUERY_CLIENT } from './left-hooks.ts'
import { sendOrExplain } from '../errors/refused.ts'

export type FunctionHooksOptions = {
  readonly conversation: ConversationHandle
  /** The session as the query found it: later events may say that the hooks were removed. */
  readonly after: number
  /** Ends the query with this error. */
  readonly fail: (error: unknown) => void
  /** Aborted when the query is left or fails. */
  readonly signal: AbortSignal
}

type Answer = Omit<Extract<BodyOf<'answerRequest'>, { kind: 'hook' }>, 'kind'>

/** How long the end of a query waits for the server to remove its hooks, in milliseconds. */
const REMOVE_MS = 5000
/** The pause between two questions whether their calls have ended, in milliseconds. */
const SETTLE_MS = 50
/** Called in the background. */
const WATCHING: readonly HookPoint[] = ['FileChanged', 'TaskCompleted', 'Notification']
/** The length that the server accepts. */
const MAX_ERROR_CHARS = 10_000
const MAX_ID_CHARS = 190

export class FunctionHooks implements AttachedHooks {
  readonly #options: FunctionHooksOptions
  readonly #client = `${QUERY_CLIENT}${randomUUID()}`
  /** The hooks by point and id. */
  readonly #hooks = new Map<string, FunctionHook>()
  readonly #work: OpenWork
  readonly #closing = new AbortController()
  /** True if the events that were read say so. */
  #wasRegistered = false

  private constructor(hooks: readonly FunctionHook[], options: FunctionHooksOptions) {
    this.#options = options
    this.#work = new OpenWork(options.fail)
    for (const hook of hooks) this.#hooks.set(keyOf(hook.point, this.#freeId(hook)), hook)
  }

  /** Resolves when the server knows the hooks: they hold for what follows. */
  static async register(hooks: readonly FunctionHook[], options: FunctionHooksOptions): Promise<FunctionHooks> {
    const functionHooks = new FunctionHooks(hooks, options)
    const { conversation, signal } = options
    const body = { hooks: functionHooks.#declaration() }
    const send = () => conversation.clientHooks.register(functionHooks.#client, body, { signal })
    await repeatLost(send, signal).catch(explainOldServer)
    functionHooks.#start()
    return functionHooks
  }

  async settle(signal: AbortSignal): Promise<void> {
    if (!this.#hooks.values().some(({ point }) => WATCHING.includes(point))) return
    const { clientHooks } = this.#options.conversation
    const isSettled = async () => {
      const all = await repeatLost(() => clientHooks.list({ signal }).all(), signal)
      // Servers of older versions do not count them.
      return !all.some(({ client, calls_waiting }) => client === this.#client && calls_waiting > 0)
    }
    while (!(await isSettled())) await sleep(SETTLE_MS, undefined, { signal })
  }

  /** The server may be about to end, too: what is left there is removed by the next query of the session. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    this.#work.endAll()
    const signal = AbortSignal.timeout(REMOVE_MS)
    const remove = () => this.#options.conversation.clientHooks.remove(this.#client, { signal })
    await repeatLost(remove, signal).catch(() => {})
  }

  /** Functions may have the same name. */
  #freeId({ point, name }: FunctionHook): string {
    const base = name.slice(0, MAX_ID_CHARS)
    let id = base
    for (let number = 2; this.#hooks.has(keyOf(point, id)); number++) id = `${base}#${number}`
    return id
  }

  #declaration(): ClientHookPoints {
    const points: ClientHookPoints = {}
    for (const [key, { point, matcher, timeout, on_failure }] of this.#hooks) {
      const hook = { id: key.slice(point.length + 1), ...withoutUndefined({ timeout, on_failure }) }
      const groups = (points[point] ??= [])
      const last = groups.at(-1)
      if (last && last.matcher === matcher && last.hooks.length < MAX_HOOKS_IN_GROUP) last.hooks.push(hook)
      else groups.push({ ...withoutUndefined({ matcher }), hooks: [hook] })
    }
    return points
  }

  #start(): void {
    const signal = AbortSignal.any([this.#options.signal, this.#closing.signal])
    this.#follow(signal).catch((error: unknown) => signal.aborted || this.#options.fail(explainRemoved(error)))
  }

  /** Reads its own stream, and not the events that the query yields: their reader may be slow. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { conversation, after } = this.#options
    const options = { hook_client: this.#client, types: ['ConfigUpdate'], after, signal } as const
    for await (const event of conversation.events(options)) {
      if (event.type === 'HookRequest')
        this.#work.start(event.request_id, (waitSignal) => this.#answerInTime(event, waitSignal))
      // An `answered` request was answered by this query: the call that sent it may still be reading the response.
      if (event.type === 'HookRequestEnded' && event.reason !== 'answered') this.#work.end(event.request_id)
      if (event.type === 'ConfigUpdate') this.#take(event.changes['client_hooks'])
    }
  }

  /** Throws if the hooks were removed. Events from before the registration do not contain them either. */
  #take(registration: unknown): void {
    if (typeof registration !== 'object' || registration === null) return
    const isRegistered = Object.hasOwn(registration, this.#client)
    if (this.#wasRegistered && !isRegistered) throw removedError()
    this.#wasRegistered = isRegistered
  }

  /** Sends nothing after its deadline, when the server has given up, too. */
  async #answerInTime(request: HookRequest, signal: AbortSignal): Promise<void> {
    // The length of the time counts, and not its end: clocks differ.
    const ms = Date.parse(request.deadline) - Date.parse(request.timestamp)
    await withinTime(ms, signal, (inTime) => this.#answer(request, inTime)).catch((error: unknown) => {
      if (!(error instanceof DOMException) || error.name !== 'TimeoutError') throw error
    })
  }

  async #answer(request: HookRequest, signal: AbortSignal): Promise<void> {
    const { requests } = this.#options.conversation
    const send = (answer: Answer) =>
      repeatLost(() => requests.answer(request.request_id, { kind: 'hook', ...answer }, { signal }), signal)
    const answer = await this.#answerTo(request, signal)
    await sendOrExplain(answer, send, (reason) => failure(`the answer was refused: ${reason}`))
  }

  /** Rejects only with the reason of the signal: a throw is a failure of the hook. */
  async #answerTo(request: HookRequest, signal: AbortSignal): Promise<Answer> {
    const hook = this.#hooks.get(keyOf(request.hook_point, request.hook_id))
    if (!hook) return failure('this program has no such hook')
    try {
      return outputOf(await orAborted(hook.say(request.payload, signal), signal))
    } catch (error) {
      signal.throwIfAborted()
      return failure(messageOf(error))
    }
  }
}

const keyOf = (point: string, id: string) => `${point} ${id}`

const failure = (why: string): Answer => ({ error: why.slice(0, MAX_ERROR_CHARS).toWellFormed() || 'it failed' })

/** A JSON object is sent as such. */
function outputOf(hookOutput: string): Answer {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it begins with {
    return hookOutput.trimStart().startsWith('{') ? { output: JSON.parse(hookOutput) as object } : { text: hookOutput }
  } catch {
    return { text: hookOutput }
  }
}

const removedError = () =>
  new AgentServerError(
    'client_hooks_not_found',
    'Another client has removed the hooks of this query, which are functions. The run was stopped: without them it would not be guarded.',
  )

const explainRemoved = (error: unknown): unknown =>
  error instanceof AgentServerError && error.code === 'client_hooks_not_found' ? removedError() : error

function explainOldServer(error: unknown): never {
  if (error instanceof AgentServerError && error.code === 'not_found')
    throw invalid(
      'Hooks cannot be functions here: the server is of an older version, which cannot ask clients. Update it, or use hooks of the type command or http.',
    )
  throw error
}
