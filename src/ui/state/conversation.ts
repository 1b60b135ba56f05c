/** One open conversation: a window of its events, and what is being written, kept up to date over one connection. */
import { computed, signal } from '@preact/signals'
import type { Event } from '../../contract/events/event.ts'
import type { ConversationHandle, ReplyOf } from '../../client/client.ts'
import { AgentServerError } from '../../client/client.ts'
import { isSilent, Items, Live } from './items.ts'
import type { ChatRow } from './items.ts'
import { client, messageOf } from './session.ts'

const PAGE = 200
/** What is longer is read when somebody wants to see it. */
const MAX_TEXT = 20_000
/** Rows in memory. Older ones are read again when somebody scrolls to them. */
const MAX_ROWS = 2000
/** Rows are so many at most while the person reads above the end: the end is read again when they come back to it. */
const MAX_ROWS_ABOVE = 2 * MAX_ROWS
/** A hidden tab gives up its connection after that many milliseconds. */
const HIDDEN_MS = 60_000

type View = ReplyOf<'getConversation'>

/** The text of an answer that is being written. */
export type Writing = { readonly text: string; readonly reasoning: string }

export class OpenConversation {
  readonly id: string
  readonly handle: ConversationHandle
  readonly view = signal<View | undefined>(undefined)
  /** What took time, also where nothing was said. */
  readonly timed = signal<readonly ChatRow[]>([])
  readonly rows = computed(() => this.timed.value.filter((row) => !isSilent(row)))
  readonly writing = signal<Writing>({ text: '', reasoning: '' })
  readonly outputs = signal<ReadonlyMap<string, string>>(new Map())
  /** Whether events before the first row can be read. */
  readonly hasOlder = signal(false)
  readonly fault = signal<string | undefined>(undefined)
  /** Grows when an MCP server connects or fails. */
  readonly mcpVersion = signal(0)
  readonly isDeleted = signal(false)
  #items = new Items()
  #live = new Live()
  #arrived: Event[] = []
  #frame = 0
  #firstSeq = 0
  #lastSeq = 0
  #shownSeq = 0
  /** Whether the person reads the end: then old rows are forgotten. */
  #isAtEnd = true
  /** Whether the last rows are not those of the last events. */
  readonly isBehind = signal(false)
  /** Grows when other rows take the place of all rows. */
  readonly place = signal(0)
  /** What arrives while the end is read again. */
  #missed: Event[] | undefined
  #isReadingOlder = false
  #connection: AbortController | undefined
  /** The server has refused to say what happens. */
  #isCut = false
  readonly #end = new AbortController()

  constructor(id: string) {
    this.id = id
    this.handle = client().conversation(id)
  }

  /** Reads the end of the conversation and follows it. */
  async open(): Promise<void> {
    try {
      const { signal } = this.#end
      const [view, page] = await Promise.all([
        this.handle.get({ signal }),
        this.handle.listEvents({ order: 'desc', limit: PAGE, max_text: MAX_TEXT }, { signal }),
      ])
      signal.throwIfAborted()
      const events = page.items.toReversed()
      this.fault.value = undefined
      this.view.value = view
      this.#items.append(events)
      this.#firstSeq = events[0]?.seq ?? 1
      this.#lastSeq = events.at(-1)?.seq ?? 0
      this.#shownSeq = this.#lastSeq
      this.timed.value = this.#items.rows
      this.hasOlder.value = this.#firstSeq > 1
      document.addEventListener('visibilitychange', this.#onVisibility)
      void this.#follow()
      // The events may be newer, and nothing would say again what they have changed.
      if (view.last_seq < this.#lastSeq) await this.refresh()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Reads again what could not be read while the server was away. */
  async recover(): Promise<void> {
    if (this.fault.value === undefined || this.isDeleted.value) return
    if (!this.view.value) return await this.open()
    this.fault.value = undefined
    if (this.#isCut) void this.#follow()
    await this.refresh().catch((error: unknown) => this.#fail(error))
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#onVisibility)
    cancelAnimationFrame(this.#frame)
    clearTimeout(this.#hiding)
    this.#end.abort()
    this.#connection?.abort()
  }

  async readOlder(): Promise<void> {
    if (this.#isReadingOlder || !this.hasOlder.value) return
    this.#isReadingOlder = true
    const before = this.#firstSeq
    try {
      const page = await this.handle.listEvents({ order: 'desc', limit: PAGE, max_text: MAX_TEXT, before_seq: before })
      // Rows were forgotten meanwhile: between this page and the first row would be a gap.
      if (this.#firstSeq !== before) return
      const events = page.items.toReversed()
      this.#items.prepend(events)
      this.#firstSeq = events[0]?.seq ?? 1
      this.hasOlder.value = this.#firstSeq > 1
      this.timed.value = this.#items.rows
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isReadingOlder = false
    }
  }

  /** Reads the events around one before the first row: those between the two are not read, however many there are. */
  async goTo(seq: number): Promise<void> {
    if (this.#firstSeq - seq <= PAGE) return await this.readOlder()
    await this.#replaceRows({ order: 'asc', after_seq: Math.max(0, seq - PAGE / 4) })
  }

  /** Reads what follows rows that are not the last ones. */
  async readNewer(): Promise<void> {
    if (!this.isBehind.value) return
    await this.#gather(async (missedEvents) => {
      const after_seq = this.#shownSeq
      const { items } = await this.handle.listEvents({ limit: PAGE, max_text: MAX_TEXT, after_seq })
      this.#append(items)
      // Only then the list follows: who is at its last row would not stay there.
      if (items.length > 0) return
      this.isBehind.value = false
      this.#append(missedEvents)
    })
  }

  /** Called with whether the last row is in sight. */
  noticeEnd(isAtEnd: boolean): void {
    // The rows above somebody who reads on are not forgotten: they would move what is read.
    this.#isAtEnd = isAtEnd && !this.isBehind.value
  }

  /** Shows the last events again. */
  async toEnd(): Promise<void> {
    if (this.isBehind.value) await this.#replaceRows({ order: 'desc' })
  }

  async #replaceRows(query: { readonly order: 'asc' | 'desc'; readonly after_seq?: number }): Promise<void> {
    await this.#gather(async (missedEvents) => {
      const page = await this.handle.listEvents({ ...query, limit: PAGE, max_text: MAX_TEXT })
      const events = query.order === 'asc' ? page.items : page.items.toReversed()
      this.#items = new Items()
      this.#firstSeq = events[0]?.seq ?? 1
      this.#shownSeq = 0
      this.hasOlder.value = this.#firstSeq > 1
      this.isBehind.value = query.order === 'asc' && page.next_page_id !== null
      this.#isAtEnd = !this.isBehind.value
      this.#append(events)
      if (!this.isBehind.value) this.#append(missedEvents)
      this.place.value += 1
    })
  }

  /** `read` gets the events that arrive meanwhile. Does nothing while something else is read. */
  async #gather(read: (missedEvents: Event[]) => Promise<void>): Promise<void> {
    if (this.#missed) return
    this.#missed = []
    try {
      await read(this.#missed)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#missed = undefined
    }
  }

  /** Adds those that are not there yet. */
  #append(events: readonly Event[]): void {
    this.#items.append(events.filter(({ seq }) => seq > this.#shownSeq))
    this.#shownSeq = Math.max(this.#shownSeq, events.at(-1)?.seq ?? 0)
    if (this.#isAtEnd && this.#items.trim(MAX_ROWS)) {
      this.#firstSeq = this.#items.rows[0]?.seq ?? this.#lastSeq
      this.hasOlder.value = true
    }
    this.timed.value = this.#items.rows
  }

  async refresh(): Promise<void> {
    const view = await this.handle.get({ signal: this.#end.signal })
    // Of two requests, the first one may be answered last.
    if (view.last_seq >= (this.view.peek()?.last_seq ?? 0)) this.view.value = view
    // What could not be read before is read now.
    if (!this.#isCut) this.fault.value = undefined
  }

  async #follow(): Promise<void> {
    const connection = new AbortController()
    this.#connection = connection
    this.#isCut = false
    try {
      const options = {
        after: this.#lastSeq,
        deltas: true,
        max_text: MAX_TEXT,
        signal: connection.signal,
        giveUpAfterMs: Infinity,
      }
      for await (const event of this.handle.events(options)) {
        if ('seq' in event) this.#arrive(event)
        else if (
          event.type === 'AssistantDelta' ||
          event.type === 'AssistantAborted' ||
          event.type === 'ToolOutputDelta'
        )
          this.#live.take(event)
        this.#frame ||= requestAnimationFrame(() => this.#show())
      }
      this.isDeleted.value = true
    } catch (error) {
      if (connection.signal.aborted) return
      this.#isCut = true
      this.#fail(error)
    }
  }

  /** A hidden tab shows nothing, and continues after what has arrived. */
  #arrive(event: Event): void {
    this.#arrived.push(event)
    this.#lastSeq = event.seq
  }

  /** Called once for all that has arrived since the last frame. */
  #show(): void {
    this.#frame = 0
    const events = this.#arrived
    this.#arrived = []
    for (const event of events) {
      if (event.type === 'AssistantMessage') this.#live.endMessage(event.message_id)
      if (event.type === 'ToolResult') this.#live.outputs.delete(event.tool_use_id)
    }
    if (events.length > 0) {
      this.isBehind.value ||= !this.#isAtEnd && this.#items.rows.length > MAX_ROWS_ABOVE
      if (this.#missed) this.#missed.push(...events)
      else if (!this.isBehind.value) this.#append(events)
      if (events.some(({ type }) => type === 'McpServerUpdate')) this.mcpVersion.value += 1
      if (events.some(({ type }) => CHANGES_THE_VIEW.has(type))) this.refresh().catch((error) => this.#fail(error))
    }
    const { text, reasoning, outputs } = this.#live
    this.writing.value = { text, reasoning }
    this.outputs.value = new Map(outputs)
  }

  #hiding: ReturnType<typeof setTimeout> | undefined
  readonly #onVisibility = () => {
    clearTimeout(this.#hiding)
    if (document.hidden) this.#hiding = setTimeout(() => this.#connection?.abort(), HIDDEN_MS)
    else if (this.#connection?.signal.aborted && !this.#end.signal.aborted) void this.#follow()
  }

  #fail(error: unknown): void {
    if (this.#end.signal.aborted) return
    // The server refuses an id of another form.
    const ofNone = this.view.value ? [404, 410] : [400, 404, 410, 414]
    if (error instanceof AgentServerError && ofNone.includes(error.status ?? 0)) this.isDeleted.value = true
    this.fault.value = messageOf(error)
  }
}

/** The server describes the conversation differently after these events. */
const CHANGES_THE_VIEW: ReadonlySet<Event['type']> = new Set([
  'StatusUpdate',
  'ConfigUpdate',
  'AssistantMessage',
  'Result',
  'Rewound',
])
