/** What the chat shows, as plain data: `reduce.ts` makes it from events, and `render/` draws it. */
import type { Status } from '../../../contract/events/status.ts'
import type { UsageByModel } from '../../../contract/values/message.ts'
import type { KindOfForm } from '../../../contract/requests/request-forms.ts'
import type { OpenRequestOf } from '../../../contract/request.ts'
import type { Starts } from './diff-numbers.ts'

export type Tone = 'info' | 'warning' | 'error'

export type UserItem = {
  readonly kind: 'user'
  readonly text: string
  readonly images: number
  readonly sender?: string
  /** Whether it was stored while the agent worked. */
  readonly steers?: boolean
  /** The stored event; absent while it is being sent. */
  readonly event?: { readonly id: string; readonly seq: number }
  /** The idempotency key of a message of this client, until the server has stored it. */
  readonly key?: string
  readonly delivery?: 'sending' | 'failed' | undefined
}
export type AnswerItem = {
  readonly kind: 'answer'
  readonly messageId: string
  /** The parts of the message, by index. */
  readonly parts: readonly string[]
  readonly isReasoning: boolean
  /** The subagent that answers. */
  readonly agent?: string
  readonly isComplete: boolean
  /** Whether only the end of the text is here. */
  readonly isCut?: boolean
}
export type CallItem = {
  readonly kind: 'call'
  readonly id: string
  readonly name: string
  /** Undefined while the model writes it. */
  readonly input: unknown
  readonly written: number
  /** The end of what it has printed. */
  readonly output: string
  readonly decision?: 'allow' | 'deny'
  /** What it waits for. */
  readonly note?: string | undefined
  readonly result?: { readonly text: string; readonly isError: boolean; readonly durationMs: number }
  /** The subagent that called. */
  readonly agent?: string
  /** The place of an edit in its files. */
  readonly starts?: Starts
  /** The id of a command that the person has run. */
  readonly commandId?: string
}
export type NoticeItem = {
  readonly kind: 'notice'
  readonly tone: Tone
  readonly text: string
  /** The command of a client that the notice reports. */
  readonly command?: string
}

export type Item = UserItem | AnswerItem | CallItem | NoticeItem

/** One call that waits for a decision. */
export type Approval = {
  readonly requestId: string
  readonly call: OpenRequestOf<'permission'>['payload']['tool_uses'][number]
  /** The subagent that calls. */
  readonly agent: string | undefined
}

/** What the person at the terminal can answer. */
export type ShownRequest = OpenRequestOf<KindOfForm<'calls' | 'questions' | 'decision'>>

export type ChatState = {
  readonly items: readonly Item[]
  /** The oldest first. */
  readonly requests: readonly ShownRequest[]
  /** Ids of the calls and requests that this client has answered. */
  readonly answeredHere: ReadonlySet<string>
  readonly status: Status
  readonly isQueued: boolean
  readonly isConnected: boolean
  /** False while earlier events are read again: what others did then needs no notice. */
  readonly isLive: boolean
  /** The title of the conversation, the beginning of its first message, or the name of its directory. */
  readonly title: string
  /** Whether that is more than the name of its directory. */
  readonly isNamed: boolean
  readonly model: string
  /** What the model has read and written last, in tokens. */
  readonly contextTokens: number | undefined
  readonly mode: string
  /** The rules that allow calls, according to the events read so far. */
  readonly allowed: readonly string[]
  /** Seq of the last event that the agent had read at its last answer. */
  readonly readThrough: number
  readonly usage: UsageByModel
  readonly costUsd: number | undefined
  /** The time when the current run began, by the clock of this machine. */
  readonly runningSince: number | undefined
  readonly lastRunMs: number | undefined
  /** What the model or the run is doing now, in a few words. */
  readonly activity: string | undefined
}

/** What a command of the person has printed, and how it ended. */
type CommandOutput = { readonly stdout: string; readonly stderr: string; readonly end: string }

/** What this client adds to the events of the server. */
export type LocalEvent =
  | { readonly type: 'Notice'; readonly tone: Tone; readonly text: string }
  | { readonly type: 'Sending'; readonly key: string; readonly text: string; readonly images: number }
  | { readonly type: 'Sent'; readonly key: string }
  | { readonly type: 'NotSent'; readonly key: string }
  | { readonly type: 'CommandStarted'; readonly key: string; readonly command: string }
  | { readonly type: 'CommandEnded'; readonly key: string; readonly shown: CommandOutput; readonly id?: string }
  | { readonly type: 'Located'; readonly id: string; readonly starts: Starts }
  | { readonly type: 'Answered'; readonly id: string }
  | { readonly type: 'Unanswered'; readonly id: string }
  | { readonly type: 'Connection'; readonly isConnected: boolean; readonly reason?: string }
  | { readonly type: 'Pending'; readonly requests: ChatState['requests'] }
  | {
      readonly type: 'Viewed'
      readonly view: Partial<Pick<ChatState, 'title' | 'isNamed' | 'status' | 'model' | 'mode' | 'usage' | 'costUsd'>>
    }
  | { readonly type: 'Read'; readonly seq: number }
  | { readonly type: 'Cleared' }
  /** No more events will arrive, such as after the conversation was deleted. */
  | { readonly type: 'Ended' }

export const EMPTY_STATE: ChatState = {
  items: [],
  requests: [],
  answeredHere: new Set(),
  status: 'idle',
  isQueued: false,
  isConnected: true,
  isLive: false,
  title: '',
  isNamed: false,
  model: '',
  contextTokens: undefined,
  mode: 'bypass',
  allowed: [],
  readThrough: 0,
  usage: {},
  costUsd: undefined,
  runningSince: undefined,
  lastRunMs: undefined,
  activity: undefined,
}

export const startsOf = ({ items }: ChatState, callId: string): Starts | undefined =>
  items.findLast((item): item is CallItem => item.kind === 'call' && item.id === callId)?.starts

/** True while Esc has something to interrupt. */
export const isBusy = ({ status }: ChatState): boolean => status === 'running' || status.startsWith('waiting_')
