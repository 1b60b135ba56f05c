/**
 * The snapshot of a conversation's state, so that its log need not be read: `meta.json` in its directory. It is a
 * cache; the log is authoritative.
 */
import { z } from 'zod'
import { PostedMessage } from '../contract/run.ts'
import { RunSampling, ToolChoice } from '../contract/values/llm-config.ts'
import { currentTools } from '../contract/values/earlier-tools.ts'
import type { Event } from '../contract/events/event.ts'
import { EVENT_VERSION } from '../contract/events/event.ts'
import { Status } from '../contract/events/status.ts'
import { Decision, PermissionMode, PermissionRules } from '../contract/values/permission.ts'
import { OpenRequest } from '../contract/request.ts'
import { UsageByModel } from '../contract/values/message.ts'
import { TaskProgress } from '../contract/values/task.ts'
import type { ForgottenRange as ForgottenEvents, AgentState, RunOverrides, Subagent } from './state-shape.ts'
import type { Repeats as RepeatsState, Streak as StreakState } from './repeats/repeats.ts'
import type { ToolCall } from './tool-call.ts'
import type { OpenPermission } from './open-permission.ts'
import { StoredAnswer } from './answered.ts'
import type { Run as RunState } from './run-state.ts'
import type { State } from './state.ts'
import type { OpenTask as TaskState } from './task-state.ts'
import type { RewoundSpan } from '../contract/events/rewound.ts'
import { Settings } from './settings.ts'
import { EMPTY_STATE, fold } from './state.ts'
import { NO_AGENT } from './state-shape.ts'

/**
 * A log of at most this many events gets no snapshot: it is folded about as fast as a snapshot is read, and the snapshot
 * would be one more file for each conversation that was only created.
 */
const SHORT_LOG = 2

/** The storage of the snapshots of conversations. */
type Snapshots = {
  readonly snapshots: {
    read(id: string): Promise<unknown>
    write(id: string, snapshot: object): Promise<void>
  }
}

/** The storage of the logs of conversations. */
type Logs = {
  view(id: string): Promise<
    AsyncDisposable & {
      readonly head: number
      read(options: { readonly limit: number }): Promise<{ readonly events: readonly { readonly event: Event }[] }>
    }
  >
}

/** A schema for each field: one without would be lost. */
type Fields<T> = Readonly<Record<keyof T, z.ZodType>>

const Run = z.object({
  id: z.string(),
  startedAt: z.string(),
  startSeq: z.number(),
  steps: z.number(),
  maxSteps: z.number().optional(),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  outputRequests: z.number().optional(),
  toolChoice: ToolChoice.optional(),
  activeSince: z.string(),
  activeMs: z.number(),
  usage: UsageByModel,
  costUsd: z.number().optional(),
  unpriced: z.string().optional(),
  finalText: z.string(),
  blockedStops: z.number().optional(),
} satisfies Fields<RunState>)

const Request = z.object({
  id: z.string(),
  // Missing in files of earlier versions: the log is read then.
  openedAt: z.string(),
  isReleased: z.boolean(),
  calls: z.array(
    z.object({
      toolUseId: z.string(),
      name: z.string(),
      input: z.unknown(),
      inputHash: z.string(),
      definitionHash: z.string().optional(),
      reason: z.string(),
      rules: z.array(z.string()).optional(),
      decision: Decision.optional(),
    } satisfies Fields<OpenPermission['calls'][number]>),
  ),
} satisfies Fields<OpenPermission>)

const OpenTask = z.object({
  id: z.string(),
  type: z.enum(['AgentRun', 'Command', 'Ticker']),
  title: z.string(),
  status: z.enum(['pending', 'running']),
  seq: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
  runId: z.string().optional(),
  progress: TaskProgress.optional(),
} satisfies Fields<TaskState>)

const OpenCall = z.object({
  toolUseId: z.string(),
  name: z.string(),
  input: z.unknown(),
  runId: z.string().optional(),
  isChanged: z.boolean().optional(),
  changedBy: z.literal('hook').optional(),
  approvedDefinition: z.string().optional(),
  clientResult: z.union([z.object({ output: z.unknown(), isError: z.boolean() }), z.literal('timeout')]).optional(),
  hook: z
    .object({
      decision: z.enum(['allow', 'ask', 'deny']).optional(),
      reason: z.string().optional(),
      context: z.string().optional(),
    })
    .optional(),
} satisfies Fields<ToolCall>)

const Forgotten = z.object({ seq: z.number(), throughSeq: z.number() } satisfies Fields<ForgottenEvents>)

const Span = z.object({ afterSeq: z.number(), beforeSeq: z.number() } satisfies Fields<RewoundSpan>)

const Streak = z.object({ recent: z.array(z.string()), times: z.number() } satisfies Fields<StreakState>)

const Turn = z.object({
  print: z.number(),
  ms: z.number(),
  results: z.array(z.string()),
  failed: z.boolean(),
} satisfies Fields<NonNullable<RepeatsState['turn']>>)

const Failures = z.object({
  times: z.number(),
  last: z.string(),
  same: z.number(),
} satisfies Fields<NonNullable<RepeatsState['failures']>>)

const Repeats = z
  .object({
    calls: Streak.optional(),
    unchanged: Streak.optional(),
    // Files of earlier versions have other counts: such a run counts from there.
    failures: Failures.optional().catch(undefined),
    texts: z.number().optional(),
    turn: Turn.optional().catch(undefined),
  } satisfies Fields<RepeatsState>)
  .default({})

const OpenSubagent = z.object({
  toolUseId: z.string(),
  callerId: z.string().optional(),
  agentId: z.string(),
  name: z.string(),
  tools: z.array(z.string()).overwrite(currentTools),
  deny: z.array(z.string()),
  model: z.string().optional(),
  mode: PermissionMode.optional(),
  isBackground: z.boolean(),
  firstSeq: z.number(),
  agent: z.object({
    run: Run.optional(),
    openCalls: z.array(OpenCall),
    request: Request.optional(),
    holdsCalls: z.boolean(),
    lastOutputs: z.record(z.string(), z.unknown()),
    readThrough: z.number(),
    repeats: Repeats,
    granted: PermissionRules.optional(),
    answered: StoredAnswer.optional(),
    forgotten: Forgotten.optional(),
    contextTokens: z.number().optional(),
  } satisfies Fields<AgentState>),
} satisfies Fields<Subagent>)

const Overrides = z.object({
  model: z.string().optional(),
  permissionMode: PermissionMode.optional(),
  allowed: PermissionRules.optional(),
  instructions: z.string().optional(),
  sampling: RunSampling.optional(),
} satisfies Fields<RunOverrides>)

/** `meta.json`: the state as of `lastSeq`; the fold continues with the rest of the log. */
const Meta = z.object({
  /** The highest version of the folded events that the writer understood. */
  format: z.int().max(EVENT_VERSION),
  id: z.string(),
  status: Status,
  reason: z.string(),
  lastSeq: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
  settings: Settings,
  // Missing in files of earlier versions, which had no hooks.
  hooksAt: z.number().default(0),
  run: Run.optional(),
  openCalls: z.array(OpenCall),
  // Missing in files of earlier versions, which had no subagents.
  subagents: z.array(OpenSubagent).default([]),
  request: Request.optional(),
  postedKeys: z.array(z.object({ key: z.string(), bodyHash: z.string(), at: z.string(), answer: PostedMessage })),
  // Missing in files of earlier versions, whose messages had no ids of clients.
  messageIds: z.string().default(''),
  // Missing in files of earlier versions, which had no tool of that kind.
  lastOutputs: z.record(z.string(), z.unknown()).default({}),
  granted: PermissionRules.optional(),
  // Missing in files of earlier versions: such a run asks the model once more.
  answered: StoredAnswer.optional(),
  // Missing in files of earlier versions: such a run reads the whole log.
  forgotten: Forgotten.optional(),
  // Missing in files of earlier versions: it is unknown until the next answer.
  contextTokens: z.number().optional(),
  // Missing in files of earlier versions, which had no tasks.
  tasks: z.array(OpenTask).default([]),
  // Missing in files of earlier versions, which had other fields: see `hasEarlierRequests`.
  requests: z.array(OpenRequest).default([]),
  holdsCalls: z.boolean().default(false),
  runRequestedAt: z.number(),
  // Missing in files of earlier versions, which had no subagents in the background.
  subagentEndedAt: z.number().default(0),
  lastRun: z.object({ id: z.string(), startSeq: z.number(), overrides: Overrides.optional() }).optional(),
  // Missing in files of earlier versions, which did not count them.
  runsInARow: z.number().default(0),
  // Missing in files of earlier versions: everything counts as read.
  readThrough: z.number().optional(),
  repeats: Repeats,
  usage: UsageByModel,
  costUsd: z.number().optional(),
  preview: z.string(),
  // Missing in files of versions in which no message could be withdrawn.
  previewSeq: z.number().default(0),
  // Missing in files of earlier versions, until the next run ends.
  lastWords: z.string().default(''),
  // Missing in files of versions in which no conversation could be rewound.
  rewound: z.array(Span).default([]),
  version: z.number(),
} satisfies Fields<State & { readonly format: number }>)

/** Returns the last stored state, or undefined if it is missing or unreadable: fold the log from the start then. */
export async function readSnapshot(storage: Snapshots, id: string): Promise<State | undefined> {
  const storedSnapshot = await storage.snapshots.read(id)
  if (hasEarlierRequests(storedSnapshot)) return undefined
  const parseResult = Meta.safeParse(storedSnapshot)
  // The file is missing, torn or of another version; it is only a cache.
  if (!parseResult.success || parseResult.data.id !== id) return undefined
  // An older server wrote it, without what newer events say: a permission rule would be lost.
  if (parseResult.data.format < Math.min(parseResult.data.version, EVENT_VERSION)) return undefined
  const { format: _, ...notedMeta } = parseResult.data
  // JSON has no `undefined`: without these fields, an agent would get those of the main agent.
  const subagents = notedMeta.subagents.map((each) => ({ ...each, agent: { ...NO_AGENT, ...each.agent } }))
  const meta = { ...notedMeta, subagents, readThrough: notedMeta.readThrough ?? notedMeta.lastSeq }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- optional fields of the schema are `undefined` ones of the state
  return { ...EMPTY_STATE, ...meta } as State
}

export const isShort = (lastSeq: number): boolean => lastSeq > 0 && lastSeq <= SHORT_LOG

/**
 * Returns the state of a conversation that is not open, as of its last snapshot or, if its log is short, of its end.
 * Undefined if neither can be read. `lastSeq`: that of the log, 0 if it is unknown.
 */
export async function readAtRest(storage: Snapshots & Logs, id: string, lastSeq: number): Promise<State | undefined> {
  const notedState = isShort(lastSeq) ? undefined : await readSnapshot(storage, id)
  return notedState ?? (await readShortLog(storage, id).catch(() => undefined))
}

async function readShortLog(storage: Logs, id: string): Promise<State | undefined> {
  await using log = await storage.view(id)
  if (log.head > SHORT_LOG) return undefined
  const { events } = await log.read({ limit: SHORT_LOG })
  const state = events.reduce((before, { event }) => fold(before, event), EMPTY_STATE)
  return state.createdAt ? state : undefined
}

export async function writeSnapshot(storage: Snapshots, state: State): Promise<void> {
  await storage.snapshots.write(state.id, { format: Math.min(state.version, EVENT_VERSION), ...state })
}

/** Earlier versions wrote what waits in other fields; the log has it too. */
function hasEarlierRequests(storedSnapshot: unknown): boolean {
  const { questions, networkRequests }: { questions?: unknown; networkRequests?: unknown } = Object(storedSnapshot)
  return [questions, networkRequests].some((fields) => Array.isArray(fields) && fields.length > 0)
}
