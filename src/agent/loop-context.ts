/** The input of the agent loop: what it knows of its conversation, and how it stores and publishes events. */
import type { Event, EventDraft } from '../contract/events/event.ts'
import type { TransientDraft } from '../contract/events/transient-event.ts'
import type { Llm } from '../llm/llm.ts'
import type { GatedTurn } from '../policy/turn-gate.ts'
import type { Compactor } from './compaction/compactor.ts'
import type { History } from './history/history.ts'
import type { LimitReadings } from './model/loop-ends.ts'
import type { LoopEnd, LoopWait } from './loop-end.ts'
import type { LoopHooks } from './loop-hooks.ts'
import type { OutputContext } from './output/final-output.ts'
import type { SentMessages } from './model/sent-messages.ts'
import type { ToolCalls } from './tool-calls.ts'
import type { ToolCall } from '../state/tool-call.ts'

/**
 * What the loop knows about its conversation. The functions return current values: the configuration may change between
 * two steps.
 */
export type AgentContext = LimitReadings & {
  readonly runId: string
  readonly history: History
  readonly toolCalls: ToolCalls
  readonly compactor: Compactor
  /** Returns the model, with secrets redacted in all of its output. */
  readonly llm: () => Llm
  /** Returns the calls without a result, in order. */
  readonly openCalls: () => readonly ToolCall[]
  /** Decides the calls that have not begun, `next` last. To be awaited before `gate`. */
  readonly decideCalls: (next: readonly ToolCall[], signal: AbortSignal) => Promise<void>
  /**
   * Returns which of the calls that have not begun need a decision first, and which are denied. While one needs a decision, no
   * further call begins. Undefined if something has changed since `decideCalls`, or it was called with others than `next`.
   */
  readonly gate: (next: readonly ToolCall[]) => GatedTurn | undefined
  /** Returns the answer that an earlier run was cut off with before it ended, if nothing came after it. */
  readonly leftAnswer: () => LeftAnswer | undefined
  /** True if a client executes a call, or all subagents that work for open calls wait for somebody. */
  readonly waitsOutside: () => boolean
  /** Returns undefined if the conversation has none. */
  readonly hooks: () => LoopHooks | undefined
  /** Aborted when another process continues: then the loop stops before its next step. */
  readonly leaving: AbortSignal | undefined
  /** Models that turned out not to support tools: reported once, and called without tools from then on. */
  readonly withoutTools: Set<string>
  /**
   * Called for each model request when everything that it contains is stored: messages stored later are not part of it.
   * Returns the seq of the last event that is.
   */
  readonly onRequest: () => number
  /** What a client can no longer withdraw. Undefined for a subagent, which reads no messages of clients. */
  readonly sent?: SentMessages | undefined
  /** Snapshots of the workdir; undefined if the conversation has none, and for subagents. */
  readonly snapshots?: LoopSnapshots | undefined
  /** What follows the system prompt in this run. Undefined for a subagent. */
  readonly instructions?: string | undefined
  /** Undefined if the run has no output schema. */
  readonly output?: OutputContext | undefined
}

/** None of them rejects: a snapshot that fails does not end the run. */
export type LoopSnapshots = {
  /** True while files may differ from the last snapshot because calls of the agent have changed them. */
  readonly mayBeChanging: boolean
  /** Returns what must be awaited before `before`. */
  readonly prepare: () => Promise<void> | undefined
  /** Returns what must be awaited before these calls begin; undefined if they may begin now. */
  readonly before: (calls: readonly ToolCall[]) => Promise<void> | undefined
  /** Begins a snapshot if calls have ended that may have changed something; to be called when the model is asked. */
  readonly ahead: () => void
  /** Returns the end with what has changed during the run. If the run only waits, somebody else may change the files now. */
  readonly finish: <T extends LoopEnd | LoopWait>(end: T) => Promise<T | LoopEnd>
  /** Receives each durable event. A run that was paused may continue later, and tools that still work end after it. */
  readonly follow: (event: Event) => void
}

export type LeftAnswer = { readonly stopReason: 'completed' | 'finished'; readonly text: string }

/** Receives events. `emit` resolves when they are durable; `publish` is for transient events. */
export type Output = {
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  readonly publish: (draft: TransientDraft) => void
}
