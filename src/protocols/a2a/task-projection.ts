/** Turns the steps of a turn into a task, and into the events that tell its readers what has changed. Pure. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { TurnRequests } from '../items/turn-requests.ts'
import type { TurnChange } from '../items/turn-changes.ts'
import type { A2aMessage, A2aPart, Artifact, StreamEvent, A2aTask, TaskState, A2aStatus } from './a2a-objects.ts'
import { partsOfRequest } from './asked-parts.ts'
import { formatTaskId, messageIdOf } from './task-id.ts'
import type { TaskId } from './task-id.ts'

type TurnEnd = Extract<TurnChange, { type: 'ended' }>

/** `historyLength`: of the newest messages; undefined: all. Without `hasFiles` images are texts that name them. */
type ShownTask = {
  readonly historyLength?: number | undefined
  readonly hasArtifacts?: boolean
  readonly hasFiles?: boolean
}

/** The answer, which has the newest text of the agent until the task has ended. */
const ANSWER = 'answer'
const STRUCTURED_OUTPUT = 'structured_output'

/** `runId`: of the run that reads its first message. */
type TaskPlace = { readonly contextId: string; readonly runId?: string | undefined }

export class TaskProjection {
  readonly #id: string
  readonly #contextId: string
  readonly #metadata: Readonly<Record<string, unknown>>
  readonly #waiting = new TurnRequests()
  readonly #history: A2aMessage[] = []
  /** The newest text, and whether readers have a part of it. */
  #text = ''
  #isShown = false
  /** The complete text that calls may follow. */
  #spoken: { readonly messageId: string; readonly text: string } | undefined
  #rests = false
  #timestamp = ''
  /** The end of the last run, while no other one works. */
  #end: TurnEnd | undefined
  /** Undefined while only messages were stored. */
  #runId: string | undefined
  /** Whether a message has begun the next task. */
  #isFollowed = false
  readonly #askedIds = new Set<string>()
  #out: StreamEvent[] = []

  constructor(taskId: TaskId, { contextId, runId }: TaskPlace) {
    this.#id = formatTaskId(taskId)
    this.#contextId = contextId
    this.#runId = runId
    this.#metadata = { conversation_id: taskId.conversationId }
  }

  get isOver(): boolean {
    return this.#end !== undefined && !this.#waits
  }

  /** True after a run, also while a subagent of it asks. */
  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  /** True if nothing that follows belongs to it: a run that no message begins would. */
  get isClosed(): boolean {
    return this.#end !== undefined && this.#isFollowed
  }

  /** Seq of its last event; undefined while it is not over. */
  get endSeq(): number | undefined {
    return this.isOver ? this.#end?.result.seq : undefined
  }

  hasAsked(requestId: string): boolean {
    return this.#askedIds.has(requestId)
  }

  get #waits(): boolean {
    const rests = this.#end ? !this.#isFollowed : this.#rests
    return rests && this.#waiting.list().length > 0
  }

  get state(): TaskState {
    if (this.#waits) return 'TASK_STATE_INPUT_REQUIRED'
    if (this.#end) return stateAt(this.#end)
    return this.#runId ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED'
  }

  /** True if nothing happens until somebody sends something. */
  get isAtRest(): boolean {
    return this.isOver || this.#waits
  }

  task({ historyLength = Infinity, hasArtifacts = true, hasFiles = true }: ShownTask = {}): A2aTask {
    const newest = historyLength === 0 ? [] : this.#history.slice(-historyLength)
    const history = hasFiles ? newest : newest.map(withoutFiles)
    const reason = this.isOver ? this.#end?.result.stop_reason : undefined
    return {
      id: this.#id,
      contextId: this.#contextId,
      status: this.#status(),
      ...(hasArtifacts && { artifacts: this.#artifacts() }),
      ...(history.length > 0 && { history }),
      metadata: { ...this.#metadata, ...(reason !== undefined && { stop_reason: reason }) },
    }
  }

  add({ change, event }: TurnStep): readonly StreamEvent[] {
    this.#out = []
    if (this.isClosed) return this.#out
    if (event) this.#read(event)
    if (change) this.#take(change)
    return this.#out
  }

  #read(event: Event | TransientEvent): void {
    if (event.type === 'UserMessage' && this.#isNext(event)) {
      const { state } = this
      this.#isFollowed = true
      this.#tellState(state)
    } else if (event.type === 'UserMessage') {
      this.#timestamp = event.timestamp
      this.#history.push(this.#message('ROLE_USER', messageIdOf(event), event.content.map(partOf)))
    } else if (event.type === 'RequestAnswered' || event.type === 'RequestClosed') {
      const { state } = this
      this.#timestamp = event.timestamp
      this.#waiting.end(event)
      this.#tellState(state)
    } else if (event.type === 'ToolResult') this.#endCall(event)
    else if (event.type === 'StatusUpdate') this.#continue(event)
  }

  /** A message to an agent at work has its run. */
  #isNext({ run, run_id: runId }: EventOf<'UserMessage'>): boolean {
    if (run && !this.#end) this.#runId ??= runId
    return run && runId !== this.#runId
  }

  /** No message has begun this run: a subagent in the background has ended, or somebody continues what was paused. */
  #continue({ timestamp }: EventOf<'StatusUpdate'>): void {
    const { state } = this
    this.#timestamp = timestamp
    this.#end = undefined
    this.#rests = false
    this.#tellState(state)
  }

  #take(change: TurnChange): void {
    switch (change.type) {
      case 'begun':
        if (change.kind === 'text') this.#text = ''
        return
      case 'grown':
        if (change.kind === 'text') this.#grow(change)
        return
      case 'complete':
        if (change.kind === 'text') this.#spoken = change
        return
      case 'retracted':
        if (change.kind === 'text') this.#replace('')
        return
      case 'call':
        this.#timestamp = change.call.timestamp
        return this.#sayBeforeCalls()
      case 'result':
        return this.#endCall(change.result)
      case 'asked':
        return this.#ask(change.request)
      case 'rests': {
        const { state } = this
        this.#rests = true
        return this.#tellState(state)
      }
      case 'ended':
        return this.#finish(change)
    }
  }

  #ask(request: EventOf<'RequestOpened'>): void {
    const { state } = this
    this.#timestamp = request.timestamp
    this.#askedIds.add(request.request_id)
    this.#waiting.add(request)
    // Before the end it rests, if all that is open waits. A subagent in the background can ask after it.
    if (this.#end) this.#tellState(state)
  }

  #endCall({ tool_use_id: id, timestamp }: EventOf<'ToolResult'>): void {
    const { state } = this
    this.#timestamp = timestamp
    this.#waiting.endCall(id)
    this.#tellState(state)
  }

  #grow({ from, text }: Extract<TurnChange, { type: 'grown' }>): void {
    const append = from > 0
    this.#text += text
    this.#isShown = true
    this.#tellArtifact(answerOf(text), append)
  }

  /** What the agent says before it calls tools belongs to the history. */
  #sayBeforeCalls(): void {
    if (!this.#spoken) return
    const { messageId, text } = this.#spoken
    this.#spoken = undefined
    const message = this.#message('ROLE_AGENT', messageId, [{ text }])
    this.#history.push(message)
    this.#tellStatus({ ...this.#status(), message })
  }

  /** Readers forget a text by getting another one in its place. */
  #replace(text: string): void {
    this.#text = text
    if (this.#isShown) this.#tellArtifact(answerOf(text))
    this.#isShown = text !== ''
  }

  #finish(end: TurnEnd): void {
    const { final_text: text, structured_output: output, timestamp } = end.result
    this.#end = end
    this.#timestamp = timestamp
    if (/\S/.test(text) && text !== this.#text) {
      this.#text = text
      this.#tellArtifact(answerOf(text))
    }
    if (output !== undefined) this.#tellArtifact(structuredArtifact(output))
    this.#tellStatus(this.#status())
  }

  #artifacts(): Artifact[] {
    const output = this.#end?.result.structured_output
    return [
      ...(/\S/.test(this.#text) ? [answerOf(this.#text)] : []),
      ...(output === undefined ? [] : [structuredArtifact(output)]),
    ]
  }

  #status(): A2aStatus {
    const { state } = this
    const parts = this.#waits ? this.#askedParts() : this.#end ? endParts(this.#end, state) : []
    const id = (this.#waits ? this.#waiting.list().at(-1)?.request.id : this.#end?.result.id) ?? ''
    const message = parts.length > 0 && { message: this.#message('ROLE_AGENT', id, parts) }
    return { state, timestamp: this.#timestamp, ...message }
  }

  #askedParts(): A2aPart[] {
    return this.#waiting.list().flatMap(partsOfRequest)
  }

  #message(role: A2aMessage['role'], messageId: string, parts: readonly A2aPart[]): A2aMessage {
    return { messageId, contextId: this.#contextId, taskId: this.#id, role, parts }
  }

  /** `before`: the state before the change. While it waits, what it waits for has changed. */
  #tellState(before: TaskState): void {
    if (this.#waiting.list().length === 0) this.#rests = false
    if (this.state !== before || this.#waits) this.#tellStatus(this.#status())
  }

  #tellStatus(status: A2aStatus): void {
    this.#out.push({ statusUpdate: { taskId: this.#id, contextId: this.#contextId, status } })
  }

  #tellArtifact(artifact: Artifact, append = false): void {
    this.#out.push({ artifactUpdate: { taskId: this.#id, contextId: this.#contextId, artifact, append } })
  }
}

const answerOf = (text: string): Artifact => ({ artifactId: ANSWER, name: ANSWER, parts: [{ text }] })

const structuredArtifact = (data: unknown): Artifact => ({
  artifactId: STRUCTURED_OUTPUT,
  name: STRUCTURED_OUTPUT,
  parts: [{ data, mediaType: 'application/json' }],
})

const partOf = (part: UserPart): A2aPart =>
  part.type === 'text' ? { text: part.text } : { raw: part.data, mediaType: part.media_type }

const withoutFiles = ({ parts, ...message }: A2aMessage): A2aMessage => ({
  ...message,
  parts: parts.map(({ raw, ...part }) => (raw === undefined ? part : { text: '[image]' })),
})

const COMPLETED: ReadonlySet<string> = new Set(['completed', 'finished'])
const CANCELED: ReadonlySet<string> = new Set(['paused', 'cancelled', 'superseded', 'rejected'])

function stateAt({ result: { stop_reason: reason, interrupted } }: TurnEnd): TaskState {
  if (interrupted || CANCELED.has(reason)) return 'TASK_STATE_CANCELED'
  return COMPLETED.has(reason) ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_FAILED'
}

function endParts({ result, error }: TurnEnd, state: TaskState): A2aPart[] {
  if (state !== 'TASK_STATE_FAILED') return []
  return [{ text: error?.message ?? `The run ended: ${result.stop_reason}. Send a message to continue.` }]
}
