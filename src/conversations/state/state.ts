/** What a conversation is, as a pure fold over its events. The only file that says which event leads to which status. */
import { z } from 'zod'
import type { Repeats } from '../../agent/repeats.ts'
import { NO_REPEATS, repeatsAfter } from '../../agent/repeats.ts'
import type { ToolCall } from '../../agent/tool-calls.ts'
import type { GatedCall, PermissionMode } from '../../policy/permissions.ts'
import { hashInput } from '../../policy/permissions.ts'
import type { PostedKey } from '../idempotency/idempotency.ts'
import { withPostedKey } from '../idempotency/idempotency.ts'
import type { OpenRequest } from '../approvals/open-request.ts'
import { isAllowed, openRequest, releasedRequest, withDecision } from '../approvals/open-request.ts'
import type { OpenNetworkRequest } from './network-requests.ts'
import { networkRequestsAfter } from './network-requests.ts'
import type { OpenTask } from '../tasks/task-state.ts'
import { tasksAfter, tasksInRun } from '../tasks/task-state.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { EVENT_VERSION } from '../../contract/events/event.ts'
import { DroppedCredential, LlmConfig } from '../../contract/llm-config.ts'
import { NetworkPolicy } from '../../contract/network.ts'
import type { UsageByModel } from '../../contract/message.ts'
import { addCost } from '../../contract/message.ts'
import { Problem } from '../../contract/problem.ts'
import { RequestedLimits } from '../../contract/resource-limits.ts'
import { TOOLS_KEPT_IN_LOG } from '../../tools/registry.ts'
import type { Run } from './run-state.ts'
import { countUsage, runAfter, runAfterAnswer } from './run-state.ts'

/** How a conversation was made and configured, without secret values: the `options_summary` of its `SystemInit`. */
export const Settings = z.object({
  title: z.string().optional(),
  user_id: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  workdir: z.string(),
  /** The directory the server made for it, which goes with it; also when it works somewhere else by now. */
  made_workdir: z.string().optional(),
  llm_config: LlmConfig,
  tools: z.array(z.string()),
  max_iteration_per_run: z.int(),
  max_seconds_per_run: z.number().optional(),
  microagents: z.array(z.string()).optional(),
  confirmation_mode: z.boolean().optional(),
  /** Of the request that made it. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string(), warnings: z.array(z.string()).optional() }).optional(),
  resume_on_start: z.boolean().optional(),
  limits: RequestedLimits.optional(),
  visualize: z.boolean().optional(),
  /** Absent: the server's default, whatever it is then. */
  network: NetworkPolicy.optional(),
})
export type Settings = z.infer<typeof Settings>

export type State = {
  readonly id: string
  readonly status: Status
  /** Why it is so; what a start of the server needs to know of a run that a stop cut off. */
  readonly reason: string
  readonly lastSeq: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly settings: Settings
  readonly run: Run | undefined
  /** Tool calls without a result, in the order of the calls. */
  readonly openCalls: readonly ToolCall[]
  /** What the calls of the open turn wait for, or waited for. */
  readonly request: OpenRequest | undefined
  /** By tool, for those in `TOOLS_KEPT_IN_LOG`: the output of its last successful call. */
  readonly lastOutputs: Readonly<Record<string, unknown>>
  /** Those that are not over, in the order they were posted. */
  readonly tasks: readonly OpenTask[]
  /** Hosts that wait for a user. */
  readonly networkRequests: readonly OpenNetworkRequest[]
  /** Seq of the newest message that asked for a run. */
  readonly runRequestedAt: number
  /** Seq of the last event that the model had read when it answered last. */
  readonly readThrough: number
  /** Failing calls of this run that came again and again. */
  readonly repeats: Repeats
  readonly usage: UsageByModel
  readonly costUsd: number | undefined
  /** What was posted in the last day and came with a key. */
  readonly postedKeys: readonly PostedKey[]
  /** Beginning of the first message: what a conversation without a title is found by. */
  readonly preview: string
  /** Highest schema version met; above ours the conversation is read, but not run. */
  readonly version: number
}

const PREVIEW_CHARS = 200

const NO_SETTINGS: Settings = { workdir: '', llm_config: {}, tools: [], max_iteration_per_run: 500 }

export const EMPTY_STATE: State = {
  id: '',
  status: 'idle',
  reason: 'created',
  lastSeq: 0,
  createdAt: '',
  updatedAt: '',
  settings: NO_SETTINGS,
  run: undefined,
  openCalls: [],
  request: undefined,
  lastOutputs: {},
  tasks: [],
  networkRequests: [],
  runRequestedAt: 0,
  readThrough: 0,
  repeats: NO_REPEATS,
  usage: {},
  costUsd: undefined,
  postedKeys: [],
  preview: '',
  version: EVENT_VERSION,
}

/** The state after one more event. Pure. */
export function fold(state: State, event: Event): State {
  const next = {
    ...state,
    id: event.conversation_id,
    lastSeq: event.seq,
    createdAt: state.createdAt || event.timestamp,
    updatedAt: event.timestamp,
    version: Math.max(state.version, event.version),
    repeats: repeatsAfter(state.repeats, event, state.openCalls),
  }
  switch (event.type) {
    case 'SystemInit':
      return { ...next, settings: readSettings(state, event, () => Settings.parse(event.options_summary)) }
    case 'ConfigUpdate':
      return { ...next, settings: readSettings(state, event, () => withChanges(state.settings, event.changes)) }
    case 'UserMessage':
      return {
        ...next,
        postedKeys: withPostedKey(state.postedKeys, event),
        runRequestedAt: event.run ? event.seq : state.runRequestedAt,
        preview: state.preview || previewOf(event),
      }
    case 'AssistantMessage':
      return afterAnswer(next, event)
    case 'ToolUse': {
      const call = { toolUseId: event.tool_use_id, name: event.name, input: event.input, runId: event.run_id }
      return event.parent_tool_use_id ? next : { ...next, openCalls: [...state.openCalls, call] }
    }
    case 'ToolResult':
      return afterResult(next, event)
    case 'PermissionRequest':
      return { ...next, request: openRequest(event) }
    case 'PermissionDecision':
      return afterDecision(next, event)
    case 'StatusUpdate': {
      const { status, reason } = event
      const run = runAfter(state.run, state.status, event)
      const request = status === 'running' ? releasedRequest(state.request) : state.request
      const repeats = run?.id === state.run?.id ? state.repeats : NO_REPEATS
      return { ...next, status, reason, run, request, repeats, tasks: tasksInRun(state.tasks, run?.id) }
    }
    case 'TaskUpdate':
      return { ...next, postedKeys: withPostedKey(state.postedKeys, event), tasks: tasksAfter(state.tasks, event) }
    case 'ClientEvent':
      return { ...next, postedKeys: withPostedKey(state.postedKeys, event) }
    case 'NetworkRequest':
    case 'NetworkDecision':
      return { ...next, networkRequests: networkRequestsAfter(state.networkRequests, event) }
    case 'ForkedFrom':
      return afterFork(next, event)
    case 'SecretsUpdate':
    case 'FileUpdate':
    case 'NetworkAccess':
    case 'CommandResult':
    case 'ModelRetry':
    case 'ErrorEvent':
    case 'Result':
      return next
    default:
      // A later server's event, which may change what holds here: read on, but do not run.
      event satisfies never
      return { ...next, version: Math.max(next.version, EVENT_VERSION + 1) }
  }
}

/** The open calls as the gate sees them. An approval is of the call as it was shown, by id and by content. */
export function gatedCalls({ openCalls, request }: State): GatedCall[] {
  return openCalls.map(({ toolUseId, name, input }) => {
    return { toolUseId, name, input, approved: isAllowed(request, toolUseId, hashInput(name, input)) }
  })
}

export const modeOf = ({ settings }: State): PermissionMode => ({ confirmation: settings.confirmation_mode ?? false })

/** What a newer version wrote may mean nothing to us: the conversation is still read, only not run. Ours that does not parse is damage. */
function readSettings(state: State, event: Event, parse: () => Settings): Settings {
  try {
    return parse()
  } catch (cause) {
    if (event.version > EVENT_VERSION) return state.settings
    throw new Problem(
      'conversation_damaged',
      `Event ${event.seq} of this conversation holds settings that make no sense. Restore events.jsonl from a backup.`,
      { cause },
    )
  }
}

/** A conversation of its own from here on: what came before was made, paid for and asked for by another. */
function afterFork(state: State, event: EventOf<'ForkedFrom'>): State {
  const settings = readSettings(state, event, () => Settings.parse(event.options_summary))
  return { ...state, settings, createdAt: event.timestamp, usage: {}, costUsd: undefined, postedKeys: [] }
}

/** A change as `ConfigUpdate` has it, over settings; `llm_config` merges field by field, over what was not dropped. */
function withChanges(settings: Settings, changes: Record<string, unknown>): Settings {
  const { llm_config, dropped, ...rest } = changes
  const names = new Set<string>(z.array(DroppedCredential).default([]).parse(dropped))
  const kept = Object.fromEntries(Object.entries(settings.llm_config).filter(([name]) => !names.has(name)))
  const merged = llm_config ? { ...kept, ...LlmConfig.parse(llm_config) } : kept
  return Settings.parse({ ...settings, ...rest, llm_config: merged })
}

function afterAnswer(state: State, event: EventOf<'AssistantMessage'>): State {
  const usage = countUsage(state.usage, event.model, event.usage)
  const costUsd = addCost(state.costUsd, event.cost_usd)
  if (event.parent_tool_use_id) return { ...state, usage, costUsd }
  // What an earlier version wrote does not tell: then all that came before the answer counts as read.
  const readThrough = event.read_through ?? event.seq
  return { ...state, run: state.run && runAfterAnswer(state.run, event), readThrough, usage, costUsd }
}

function afterResult(state: State, event: EventOf<'ToolResult'>): State {
  const openCalls = state.openCalls.filter((call) => call.toolUseId !== event.tool_use_id)
  const request = openCalls.length ? state.request : undefined
  return { ...state, openCalls, request, lastOutputs: outputsAfter(state, event) }
}

/** The call as it is to run: with the input that the decision gave it. */
function afterDecision(state: State, event: EventOf<'PermissionDecision'>): State {
  const { updated_input: input } = event
  const request = withDecision(state.request, event)
  const openCalls =
    input === undefined || request === state.request
      ? state.openCalls
      : state.openCalls.map((call) =>
          call.toolUseId === event.tool_use_id ? { ...call, input, isChanged: true } : call,
        )
  return { ...state, openCalls, request }
}

function outputsAfter({ openCalls, lastOutputs }: State, event: EventOf<'ToolResult'>): State['lastOutputs'] {
  const name = openCalls.find((call) => call.toolUseId === event.tool_use_id)?.name
  const isKept = name !== undefined && TOOLS_KEPT_IN_LOG.has(name) && !event.is_error
  return isKept ? { ...lastOutputs, [name]: event.output } : lastOutputs
}

function previewOf(event: EventOf<'UserMessage'>): string {
  const text = event.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
  // A copy: a slice of a string keeps all of it in memory, and of each conversation there is a preview.
  return Buffer.from(text.slice(0, PREVIEW_CHARS)).toString()
}
