/**
 * The callbacks of one conversation while it is open: changes are stored before they take effect, and each enabled
 * callback delivers. Owns the stored callbacks, the dirty flag and the running deliveries; `callbacks.ts` handles
 * client requests.
 */
import { Problem } from '../contract/problem.ts'
import type { EventLog, LogEnd } from '../events/event-log.ts'
import { Queue } from '../lib/queue.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { Sealer } from '../security/sealer.ts'
import type { CreationKey, StoredDocument } from '../storage/storage.ts'
import type { Logger } from '../telemetry/logger.ts'
import { KEY_LIFETIME_MS } from '../state/idempotency.ts'
import { secretsInHeader } from '../security/secrets-in-header.ts'
import type { CallbackRecord } from './callback-record.ts'
import { CallbackFile, Credentials, FILE_FORMAT, NO_CALLBACKS } from './callback-record.ts'
import type { DeliveryHistory } from './delivery-history.ts'
import { createDeliveryHistory } from './delivery-history.ts'
import { deliverEvents } from './deliver-events.ts'
import type { CallbackDispatcher } from './dispatcher.ts'
import type { DirtyFlag } from './dirty-flag.ts'

export type CallbackSetDeps = {
  /** Holds the `CallbackFile`. */
  readonly document: StoredDocument
  readonly log: EventLog
  readonly mark: DirtyFlag
  readonly dispatcher: CallbackDispatcher
  readonly redactor: Redactor
  readonly sealer: Sealer
  readonly logger: Logger
}

export type Entry = {
  record: CallbackRecord
  /** Undefined if no key of the server decrypts them: nothing is delivered then, and the view says why. */
  readonly credentials: Credentials | undefined
  readonly history: DeliveryHistory
}

/** Delay after a failed write, in milliseconds. */
const STORE_AGAIN_MS = 30_000

/** Throws the disk's errors; a file that is not a valid callback file is set aside. */
export async function readCallbacks(document: StoredDocument, logger: Logger): Promise<CallbackFile> {
  const storedFile = await document.read()
  if (storedFile === undefined) return NO_CALLBACKS
  const parseResult = CallbackFile.safeParse(storedFile)
  if (parseResult.success) return parseResult.data
  const path = await document.setAside()
  logger.error({ path }, 'callbacks that cannot be read were set aside')
  return NO_CALLBACKS
}

export class CallbackSet {
  readonly #deps: CallbackSetDeps
  readonly #entries = new Map<string, Entry>()
  readonly #working = new Map<string, { readonly abort: AbortController; readonly done: Promise<void> }>()
  readonly #queue = new Queue({ limit: 1 })
  readonly #over = new AbortController()
  #goneKeys: readonly CreationKey[]
  /** True if there is progress that is not stored. */
  #isDirty = false
  #timer: NodeJS.Timeout | undefined
  /** False while there was no callback yet: the appends of the log pay nothing then. */
  #isGuarded = false

  constructor(deps: CallbackSetDeps, file: CallbackFile) {
    this.#deps = deps
    this.#goneKeys = file.goneKeys
    for (const record of file.callbacks) this.#entries.set(record.id, this.#entryOf(record))
    if (this.#entries.size > 0) void this.#guardLog()
  }

  /** Aborted when the conversation closes. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** The entries in the order of creation. */
  get entries(): readonly Entry[] {
    return [...this.#entries.values()].toSorted((a, b) => (a.record.id < b.record.id ? -1 : 1))
  }

  /** The keys of deleted callbacks. */
  get goneKeys(): readonly CreationKey[] {
    return this.#goneKeys
  }

  /** True if a delivery is pending that could be sent. */
  get hasDue(): boolean {
    return this.#entries.values().some((entry) => entry.credentials !== undefined && this.#isEntryBehind(entry))
  }

  get hasEnabled(): boolean {
    return this.#entries.values().some(({ record }) => record.enabled)
  }

  /** Starts the deliveries. Call it once, when the conversation is open. */
  async start(): Promise<void> {
    if (this.#entries.size === 0) return
    await this.#queue.run(async () => {
      if (this.#isBehind()) await this.#deps.mark.raise()?.catch(this.#report)
      for (const entry of this.#entries.values()) this.#deliver(entry)
      this.#storeLater(this.#deps.dispatcher.timing.storeAfterMs)
    })
  }

  /**
   * Makes one change at a time; it is durable when this resolves. `change` receives the stopped callback and returns
   * its new state; if it throws, nothing changes.
   */
  async put(id: string, change: (before: Entry | undefined) => Entry | undefined): Promise<Entry | undefined> {
    return await this.#queue.run(async () => {
      if (this.#over.signal.aborted) throw new Problem('unavailable', 'The conversation is being closed; try again.')
      if (!this.#isGuarded) await this.#guardLog()
      // This precedes the change: it may leave something to deliver.
      await this.#deps.mark.raise()
      await this.#stop(id)
      const before = this.#entries.get(id)
      const goneKeys = this.#goneKeys
      try {
        const after = change(before)
        this.#set(id, after)
        if (before && !after) this.#goneKeys = [...goneKeys, ...keysOf(before)]
        await this.#write()
        if (before && before.credentials !== after?.credentials) this.#deps.redactor.delete(nameOf(id))
        if (after?.credentials) this.#hide(id, after.credentials)
        return after
      } catch (error) {
        this.#set(id, before)
        this.#goneKeys = goneKeys
        throw error
      } finally {
        const now = this.#entries.get(id)
        if (now) this.#deliver(now)
        this.#storeLater(this.#deps.dispatcher.timing.storeAfterMs)
      }
    })
  }

  seal(credentials: Credentials): string {
    return this.#deps.sealer.seal(Buffer.from(JSON.stringify(credentials))).toString('base64')
  }

  /** Stores pending progress, and clears the dirty flag if nothing is pending. */
  async settle(): Promise<void> {
    await this.#queue.run(async () => {
      if (!this.#over.signal.aborted) await this.#settle()
    })
  }

  /** Aborts deliveries in progress; nothing is delivered when this resolves. */
  async close(end: LogEnd): Promise<void> {
    this.#over.abort()
    await this.#queue.run(async () => {
      clearTimeout(this.#timer)
      await Promise.all([...this.#working.keys()].map((id) => this.#stop(id)))
      if (end === 'closing' && this.#entries.size > 0) await this.#settle().catch(this.#report)
    })
  }

  async #guardLog(): Promise<void> {
    const { log, mark } = this.#deps
    this.#isGuarded = true
    mark.guardFor(this)
    await log.guardWith((append) => mark.guard(append))
  }

  #entryOf(record: CallbackRecord): Entry {
    const { log, sealer } = this.#deps
    const history = createDeliveryHistory(record.failed)
    // The log may have been restored from an older copy.
    const within = { ...record, cursor: Math.min(record.cursor, log.head) }
    const openedBytes = sealer.unseal(Buffer.from(record.sealed, 'base64'))
    const credentials = openedBytes && Credentials.parse(JSON.parse(openedBytes.toString()))
    if (credentials) this.#hide(record.id, credentials)
    return { record: credentials ? unlockedRecord(within) : within, credentials, history }
  }

  /** Redacts the credentials everywhere: only the receiver may see them. */
  #hide(id: string, { secret, previous, headers }: Credentials): void {
    const parts = Object.entries(headers).flatMap(([name, value]) => secretsInHeader(name, value))
    const secrets = [secret, ...(previous ? [previous.secret] : [])]
    const bare = secrets.map((each) => each.slice(each.indexOf('_') + 1))
    this.#deps.redactor.setServerKey(nameOf(id), ...secrets, ...bare, ...parts)
  }

  #set(id: string, entry: Entry | undefined): void {
    if (entry) this.#entries.set(id, entry)
    else this.#entries.delete(id)
  }

  #deliver(entry: Entry): void {
    const { record, credentials, history } = entry
    if (!record.enabled || !credentials || this.#over.signal.aborted) return
    const { log, dispatcher, logger } = this.#deps
    const ids = { conversation_id: log.conversationId, callback_id: record.id }
    const abort = new AbortController()
    const delivering = deliverEvents(
      {
        log,
        dispatcher,
        url: record.url,
        credentials,
        types: record.events && new Set(record.events),
        form: record.form,
        history,
        progress: () => ({ cursor: entry.record.cursor, failing: entry.record.failing }),
        onProgress: (progress) => {
          entry.record = { ...entry.record, ...progress }
          this.#noteProgress()
        },
        onDisable: (reason) => {
          logger.warn({ ...ids, reason }, 'a callback was disabled')
          const updated_at = new Date().toISOString()
          entry.record = { ...entry.record, enabled: false, disabled_reason: reason, updated_at }
          this.#noteProgress()
        },
        onError: (error) =>
          logger.error({ err: error, ...ids }, 'a callback could not read the log, or make a body of it'),
      },
      abort.signal,
    )
    this.#working.set(record.id, { abort, done: delivering })
  }

  async #stop(id: string): Promise<void> {
    const work = this.#working.get(id)
    work?.abort.abort()
    await work?.done
    this.#working.delete(id)
    this.#entries.get(id)?.history.rest()
  }

  #noteProgress(): void {
    this.#isDirty = true
    this.#storeLater(this.#deps.dispatcher.timing.storeAfterMs)
  }

  #storeLater(ms: number): void {
    if (this.#timer || this.#over.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.settle().catch((error: unknown) => {
        this.#report(error)
        this.#storeLater(STORE_AGAIN_MS)
      })
    }, ms).unref()
  }

  async #settle(): Promise<void> {
    if (this.#isDirty) await this.#write()
    if (this.#isBehind() || (await this.#deps.mark.lower())) return
    // An event is being stored. If no callback is enabled any more, no delivery of it brings us here again.
    this.#storeLater(this.#deps.dispatcher.timing.storeAfterMs)
  }

  /** Includes callbacks that no key decrypts: the flag stays set until a start with the right key delivers. */
  #isBehind(): boolean {
    return this.#entries.values().some((entry) => this.#isEntryBehind(entry))
  }

  #isEntryBehind({ record }: Entry): boolean {
    return record.enabled && record.cursor < this.#deps.log.head
  }

  async #write(): Promise<void> {
    const callbacks = this.entries.map(({ record, history }) => ({ ...record, failed: history.failed() }))
    const oldest = Date.now() - KEY_LIFETIME_MS
    const goneKeys = this.#goneKeys.filter(({ at }) => Date.parse(at) > oldest)
    this.#isDirty = false
    try {
      await this.#deps.document.write({ format: FILE_FORMAT, callbacks, goneKeys })
    } catch (error) {
      this.#isDirty = true
      throw error
    }
  }

  readonly #report = (error: unknown): void => {
    const { logger, log } = this.#deps
    logger.warn({ err: error, conversation_id: log.conversationId }, 'the progress of callbacks could not be stored')
  }
}

/** Returns the idempotency key of the request that created it. */
export function keysOf({ record: { id, created_at, idempotency } }: Entry): CreationKey[] {
  return idempotency ? [{ ...idempotency, id, at: created_at }] : []
}

/** An earlier version stored a missing key as a disabled callback; this undoes it. */
function unlockedRecord(record: CallbackRecord): CallbackRecord {
  const { disabled_reason, ...rest } = record
  return disabled_reason?.startsWith('its secret and headers were encrypted') ? { ...rest, enabled: true } : record
}

/** The replacement text for redacted credentials. */
const nameOf = (id: string) => `callback ${id}`
