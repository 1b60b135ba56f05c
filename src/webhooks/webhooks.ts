/**
 * What clients can do with a conversation's callbacks: create, find, change, test and delete them, and list deliveries.
 */
import type {
  Callback,
  CallbackTest,
  CreateCallback,
  CreatedCallback,
  DeliveryPage,
  ListDeliveries,
  RotateCallbackSecret,
  TestOutcome,
  UpdateCallback,
  UpdatedCallback,
} from '../contract/callback.ts'
import { MAX_CALLBACKS } from '../contract/callback.ts'
import { cursorAhead, Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { createWebhookSecret } from '../security/webhook-signature.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { answerOnce, keptOf } from '../state/idempotency.ts'
import { createInFlight } from '../idempotency/in-flight.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import type { CallbackRecord, DeliveryForm } from './callback-record.ts'
import type { CallbackSet, Entry } from './callback-set.ts'
import { keysOf } from './callback-set.ts'
import { createDeliveryHistory } from './delivery-history.ts'
import { fieldsOfAttempt } from './deliver-events.ts'
import type { DeliveryState } from './delivery-state.ts'
import { callbackView, stateOfEntry } from './delivery-state.ts'
import type { CallbackDispatcher } from './dispatcher.ts'
import type { UpdatedEntry } from './update-callback.ts'
import { lowerNames, requireCredentials, updateCallback } from './update-callback.ts'

export type WebhooksDeps = {
  readonly conversationId: string
  readonly set: CallbackSet
  readonly log: Pick<EventLog, 'head'>
  readonly dispatcher: CallbackDispatcher
  readonly redact: (text: string) => string
}

type MakeOptions = {
  readonly idempotency?: Idempotency
  readonly form?: DeliveryForm
  /** Undefined: what happens from now on. */
  readonly afterSeq?: number
}

/** Each method throws a `Problem` for an invalid request; changes are durable when they resolve. */
export class Webhooks {
  readonly #deps: WebhooksDeps
  readonly #set: CallbackSet
  readonly #inFlight = createInFlight()

  constructor(deps: WebhooksDeps) {
    this.#deps = deps
    this.#set = deps.set
  }

  list(): Callback[] {
    return this.#set.entries.map(callbackView)
  }

  /** Returns each with its deliveries that failed. */
  states(): DeliveryState[] {
    return this.#set.entries.map(stateOfEntry)
  }

  get(id: string): Callback {
    return callbackView(this.#find(id))
  }

  /** Idempotent: the same key and body within a day returns the same callback, including its secret. */
  async create(request: CreateCallback, idempotency?: Idempotency): Promise<CreatedCallback> {
    if (!idempotency) return await this.#make(request)
    return await answerOnce(idempotency, {
      remembered: [...this.#set.entries.flatMap(keysOf), ...this.#set.goneKeys],
      make: () => this.#inFlight(idempotency.key, () => this.#make(request, { idempotency })),
      again: async ({ id }) => createdViewOf(this.#find(id)),
    })
  }

  /** Throws the `Problem` of a callback that would not be created after this many are removed. Changes nothing. */
  async check(request: CreateCallback, removedCount: number): Promise<void> {
    this.#refuseMany(removedCount)
    await this.#refuse(request)
  }

  /** Creates a callback with bodies of a protocol, about the events after a seq. */
  readonly createWithForm = (request: CreateCallback, form: DeliveryForm, afterSeq: number): Promise<CreatedCallback> =>
    this.#make(request, { form, afterSeq })

  /** Returns the callbacks of a protocol. */
  withForm(protocol: string): { readonly callback: Callback; readonly form: DeliveryForm }[] {
    return this.#set.entries.flatMap((entry) => {
      const { form } = entry.record
      return form?.protocol === protocol ? [{ callback: callbackView(entry), form }] : []
    })
  }

  async update(id: string, request: UpdateCallback): Promise<UpdatedCallback> {
    this.#find(id)
    await this.#refuse(request)
    let reportedAttempt: UpdatedEntry['reported'] = {}
    const callback = await this.#change(id, (before) => {
      const updatedEntry = updateCallback(before, request, (credentials) => this.#set.seal(credentials))
      reportedAttempt = updatedEntry.reported
      return updatedEntry.entry
    })
    return { ...callback, ...reportedAttempt }
  }

  /** Deliveries are signed with both secrets until the overlap is over. The response contains the new one. */
  async rotateSecret(id: string, { overlap_seconds }: RotateCallbackSecret): Promise<CreatedCallback> {
    this.#find(id)
    const until = new Date(Date.now() + overlap_seconds * 1000).toISOString()
    await this.#change(id, (before) => {
      const { secret, headers } = requireCredentials(before.credentials)
      const previous = overlap_seconds > 0 ? { previous: { secret, until } } : {}
      const credentials = { secret: createWebhookSecret(), headers, ...previous }
      const update = { sealed: this.#set.seal(credentials), updated_at: new Date().toISOString() }
      return { ...before, credentials, record: { ...before.record, ...update } }
    })
    return createdViewOf(this.#find(id))
  }

  async remove(id: string): Promise<void> {
    await this.#set.put(id, (before) => {
      if (!before) throw notFound()
      return undefined
    })
  }

  deliveries(id: string, query: ListDeliveries): DeliveryPage {
    return this.#find(id).history.page(query)
  }

  /** Sends one `CallbackTest`, even if the callback is disabled or has pending deliveries. */
  async test(id: string, signal: AbortSignal): Promise<TestOutcome> {
    const { conversationId, dispatcher } = this.#deps
    const { record, credentials } = this.#find(id)
    const event = testEvent(conversationId)
    const body = JSON.stringify({ conversation_id: conversationId, event })
    const message = { url: record.url, credentials: requireCredentials(credentials), id: event.id, body }
    const attempt = await dispatcher.send(message, AbortSignal.any([signal, this.#set.signal])).catch(refuseBrokenOff)
    const { at: _, ...reportedAttempt } = fieldsOfAttempt(attempt)
    return { event_id: event.id, status: attempt.outcome === 'delivered' ? 'delivered' : 'failed', ...reportedAttempt }
  }

  /** Moves the cursor back to this event, if it is past it. */
  redeliver(id: string, fromSeq: number): Promise<Callback> {
    const { log } = this.#deps
    return this.#change(id, (before) => {
      if (fromSeq > log.head) throw cursorAhead('from_seq', fromSeq, log.head)
      const cursor = Math.min(before.record.cursor, fromSeq - 1)
      return { ...before, record: { ...before.record, cursor, failing: undefined } }
    })
  }

  #find(id: string): Entry {
    const entry = this.#set.entries.find(({ record }) => record.id === id)
    if (!entry) throw notFound()
    return entry
  }

  async #make(request: CreateCallback, { idempotency, form, afterSeq }: MakeOptions = {}): Promise<CreatedCallback> {
    const { log, redact } = this.#deps
    refuseSecretsIn({ 'Idempotency-Key': idempotency?.key }, redact)
    await this.#refuse(request)
    const credentials = { secret: createWebhookSecret(), headers: lowerNames(request.headers ?? {}) }
    const id = uuid7()
    const createdEntry = await this.#set.put(id, () => {
      this.#refuseMany()
      const at = new Date().toISOString()
      const record: CallbackRecord = {
        id,
        url: request.url,
        events: request.events && [...new Set(request.events)],
        sealed: this.#set.seal(credentials),
        enabled: true,
        // Start with new events: `redeliver` sends earlier ones.
        cursor: afterSeq ?? log.head,
        failed: [],
        created_at: at,
        updated_at: at,
        form,
        idempotency: idempotency && keptOf(idempotency),
      }
      return { record, credentials, history: createDeliveryHistory([]) }
    })
    // oxlint-disable-next-line typescript/no-non-null-assertion -- `put` returns what it was given
    return createdViewOf(createdEntry!)
  }

  async #change(id: string, to: (before: Entry) => Entry): Promise<Callback> {
    const changedEntry = await this.#set.put(id, (before) => {
      if (!before) throw notFound()
      return to(before)
    })
    // oxlint-disable-next-line typescript/no-non-null-assertion -- `put` returns what it was given
    return callbackView(changedEntry!)
  }

  #refuseMany(removedCount = 0): void {
    if (this.#set.entries.length - removedCount < MAX_CALLBACKS) return
    throw new Problem('invalid_request', `A conversation has at most ${MAX_CALLBACKS} callbacks; delete one first.`)
  }

  async #refuse({ url, headers }: Pick<UpdateCallback, 'url' | 'headers'>): Promise<void> {
    const { dispatcher, redact } = this.#deps
    refuseSecretsIn({ url }, redact)
    refuseServerKeysIn(headers, redact)
    const refusal = url === undefined ? undefined : await dispatcher.refusal(url)
    if (refusal === undefined) return
    throw new Problem(
      'callback_address_refused',
      `Deliveries to this host are not allowed: ${refusal}. The operator can allow it with OPENHANDS_CALLBACK_ALLOW.`,
    )
  }
}

function createdViewOf(entry: Entry): CreatedCallback {
  return { ...callbackView(entry), secret: requireCredentials(entry.credentials).secret }
}

function testEvent(conversationId: string): CallbackTest {
  const now = Date.now()
  return {
    id: uuid7(now),
    timestamp: new Date(now).toISOString(),
    conversation_id: conversationId,
    source: 'environment',
    type: 'CallbackTest',
    version: 1,
  }
}

/** A header may hold a secret of the conversation, but never the server's own keys. */
function refuseServerKeysIn(headers: Readonly<Record<string, string>> = {}, redact: (text: string) => string): void {
  if (!Object.values(headers).some((value) => /<secret:(OPENHANDS_|LLM_API_KEY>)/.test(redact(value)))) return
  throw new Problem('invalid_request', 'headers contain a key of this server, which must not be sent to a receiver.')
}

function refuseBrokenOff(cause: unknown): never {
  throw new Problem('unavailable', 'The test was aborted; try again.', { cause })
}

const notFound = () => new Problem('callback_not_found', 'There is no callback with this id in this conversation.')
