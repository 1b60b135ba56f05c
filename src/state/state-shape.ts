/** The shape of a conversation's state, which is a fold of its log: what belongs to one agent, and what to all. */
import type { Repeats } from './repeats/repeats.ts'
import { NO_REPEATS } from './repeats/repeats.ts'
import type { ToolCall } from './tool-call.ts'
import type { EventOf } from '../contract/events/event.ts'
import type { StoredKind } from '../contract/requests/request-kinds.ts'
import type { Status } from '../contract/events/status.ts'
import type { UsageByModel } from '../contract/values/message.ts'
import type { OpenRequestOf } from '../contract/request.ts'
import type { RunSampling } from '../contract/values/llm-config.ts'
import type { PermissionMode, PermissionRules } from '../contract/values/permission.ts'
import type { OpenPermission } from './open-permission.ts'
import type { PostedKey } from './idempotency.ts'
import type { OpenTask } from './task-state.ts'
import type { StoredAnswer } from './answered.ts'
import type { Run } from './run-state.ts'
import type { RewoundSpan } from '../contract/events/rewound.ts'
import type { Settings } from './settings.ts'

/**
 * The newest compaction that forgot more than those before it: where it is in the log, and the last event that it
 * forgot.
 */
export type ForgottenRange = { readonly seq: number; readonly throughSeq: number }

/** A request that waits. Permissions are folded with the calls of their agent. */
export type StoredRequest = OpenRequestOf<Exclude<StoredKind, 'permission'>>

/** The part of the state that belongs to one agent: the main agent, or a subagent. */
export type AgentState = {
  readonly run: Run | undefined
  /** Tool calls without a result, in the order of the calls. */
  readonly openCalls: readonly ToolCall[]
  /** The permission request of the open turn, pending or decided. */
  readonly request: OpenPermission | undefined
  /** True after the run stopped to ask, until it continues: no call of the turn has begun. */
  readonly holdsCalls: boolean
  /** The output of the last successful call of each tool in `TOOLS_KEPT_IN_LOG`. */
  readonly lastOutputs: Readonly<Record<string, unknown>>
  /** Rules of the skills and slash commands in use, which allow. */
  readonly granted: PermissionRules | undefined
  /** Seq of the last event that the model had read at its last answer. */
  readonly readThrough: number
  /** What the agent repeated in this run, and in those before it that ended paused. */
  readonly repeats: Repeats
  /** The answer that its run has not ended with yet. */
  readonly answered: StoredAnswer | undefined
  /** What the model does not read any more. */
  readonly forgotten: ForgottenRange | undefined
  /** The tokens of its last request and answer, or what a compaction has left of them. */
  readonly contextTokens: number | undefined
}

/** A subagent that has not ended. */
export type Subagent = {
  /** The call that it works for. */
  readonly toolUseId: string
  /** The call of the subagent that called it; undefined for a subagent of the main agent. */
  readonly callerId: string | undefined
  readonly agentId: string
  readonly name: string
  readonly tools: readonly string[]
  readonly deny: readonly string[]
  readonly model: string | undefined
  readonly mode: EventOf<'SubagentStart'>['permission_mode']
  readonly isBackground: boolean
  /** The seq at which its messages begin in the log. */
  readonly firstSeq: number
  readonly agent: AgentState
}

/** What holds for one run instead of the settings of the conversation. */
export type RunOverrides = {
  readonly model?: string | undefined
  readonly permissionMode?: PermissionMode | undefined
  /** More rules that allow. */
  readonly allowed?: PermissionRules | undefined
  /** What follows the system prompt. */
  readonly instructions?: string | undefined
  readonly sampling?: RunSampling | undefined
}

type LastRun = { readonly id: string; readonly startSeq: number; readonly overrides?: RunOverrides | undefined }

export type State = AgentState & {
  readonly id: string
  readonly status: Status
  /** Why the status was set; at startup the server needs it for an interrupted run. */
  readonly reason: string
  readonly lastSeq: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly settings: Settings
  /** Seq of the `ConfigUpdate` that set the hooks; 0 for those of the creation. */
  readonly hooksAt: number
  /** The subagents in the order in which they began. */
  readonly subagents: readonly Subagent[]
  /** What waits for a user or a client, in the order of opening; permissions are part of their agent. */
  readonly requests: readonly StoredRequest[]
  /** Open tasks, in the order of posting. */
  readonly tasks: readonly OpenTask[]
  /** Seq of the newest message that asked for a run. */
  readonly runRequestedAt: number
  /** Seq of the newest end of a subagent in the background, which the agent reads as a message. */
  readonly subagentEndedAt: number
  /** The newest run, active or not, and the seq of its first event. */
  readonly lastRun: LastRun | undefined
  /** Runs that have begun since the user asked for something: that of the user, and those that followed by themselves. */
  readonly runsInARow: number
  readonly usage: UsageByModel
  readonly costUsd: number | undefined
  /** Keys of requests of the last day. */
  readonly postedKeys: readonly PostedKey[]
  /** The places of the messages that have an id of a client; see `idempotency.ts`. Empty without any. */
  readonly messageIds: string
  /** The beginning of the first message, by which an untitled conversation can be searched. */
  readonly preview: string
  /** The seq of that message; 0 without one. */
  readonly previewSeq: number
  /** The beginning of the text that the newest run ended with. */
  readonly lastWords: string
  /** The spans in which events do not hold any more, in order. */
  readonly rewound: readonly RewoundSpan[]
  /** Highest schema version seen; above ours, the conversation can be read but not run. */
  readonly version: number
}

const NO_SETTINGS: Settings = { workdir: '', llm_config: {}, tools: [], max_iteration_per_run: 500 }

export const EMPTY_STATE: State = {
  id: '',
  status: 'idle',
  reason: 'created',
  lastSeq: 0,
  createdAt: '',
  updatedAt: '',
  settings: NO_SETTINGS,
  hooksAt: 0,
  run: undefined,
  openCalls: [],
  subagents: [],
  request: undefined,
  requests: [],
  holdsCalls: false,
  lastOutputs: {},
  granted: undefined,
  tasks: [],
  runRequestedAt: 0,
  subagentEndedAt: 0,
  lastRun: undefined,
  runsInARow: 0,
  readThrough: 0,
  repeats: NO_REPEATS,
  answered: undefined,
  forgotten: undefined,
  contextTokens: undefined,
  usage: {},
  costUsd: undefined,
  postedKeys: [],
  messageIds: '',
  preview: '',
  previewSeq: 0,
  lastWords: '',
  rewound: [],
  version: 1,
}

export const NO_AGENT: AgentState = {
  run: undefined,
  openCalls: [],
  request: undefined,
  holdsCalls: false,
  lastOutputs: {},
  readThrough: 0,
  repeats: NO_REPEATS,
  granted: undefined,
  answered: undefined,
  forgotten: undefined,
  contextTokens: undefined,
}
