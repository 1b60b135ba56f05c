/** The event by which a conversation goes back, and which events of a log hold after it. */
import { z } from 'zod'
import { byUser, Envelope, KeyFields } from './envelope.ts'

/** What the agent had at the event that the conversation went back to, as far as its state is not the one of now. */
const RestoredState = z.object({
  last_outputs: z.record(z.string(), z.unknown()).optional().describe('The task list of the agent.'),
  forgotten: z
    .object({ seq: z.int().positive(), through_seq: z.int().positive() })
    .optional()
    .describe('The compaction that holds again.'),
  context_tokens: z.int().nonnegative().optional(),
})

export const ClosedByRewind = z
  .object({
    requests: z.array(z.string()).describe('Ids of requests that waited.'),
    tasks: z.array(z.uuid()).describe('Ids of tasks that were cancelled.'),
    subagents: z.array(z.uuid()).describe('Ids of subagents that worked.'),
  })
  .meta({ id: 'ClosedByRewind' })
export type ClosedByRewind = z.infer<typeof ClosedByRewind>

export const Rewound = Envelope.extend({
  ...byUser,
  type: z.literal('Rewound'),
  to_seq: z.int().positive().describe('The last event that holds. The events between it and this one do not hold.'),
  by: z.string().optional().describe('The name of the API key of the client. Absent for the master key.'),
  closed: ClosedByRewind,
  processes_left: z.int().nonnegative().describe('Processes in the background that still run.'),
  restored: RestoredState,
  ...KeyFields,
})
  .meta({ id: 'Rewound' })
  .describe(
    'A client took the conversation back. The log keeps what does not hold any more, and no model request has it. Settings, secrets, MCP servers, costs and budgets stay those of now.',
  )

export const FilesRestored = Envelope.extend({
  ...byUser,
  type: z.literal('FilesRestored'),
  to_seq: z.int().positive().describe('The files are as they were after this event.'),
  snapshot_id: z.uuid(),
  by: z.string().optional().describe('The name of the API key of the client. Absent for the master key.'),
  changed: z.int().nonnegative().describe('Files, links and directories that were written.'),
  removed: z.int().nonnegative(),
  failed: z.int().nonnegative().describe('Paths that could not be restored.'),
  ...KeyFields,
})
  .meta({ id: 'FilesRestored' })
  .describe('A client took the files back. A `WorkspaceSnapshot` before it has them as they were then.')

/** The events between the two seqs do not hold. */
export type RewoundSpan = { readonly afterSeq: number; readonly beforeSeq: number }

/** Settings and files are those of now, and a message that was withdrawn stays withdrawn. */
const HOLD_ALWAYS: ReadonlySet<string> = new Set([
  'ConfigUpdate',
  'SecretsUpdate',
  'McpServerUpdate',
  'ForkedFrom',
  'MessageWithdrawn',
  'WorkspaceSnapshot',
  'FilesRestored',
])

/** Returns the spans after one more rewind, in order and apart from each other. `to_seq` is in none of them. */
export function withRewind(
  spans: readonly RewoundSpan[],
  { seq, to_seq }: { readonly seq: number; readonly to_seq: number },
): readonly RewoundSpan[] {
  return [...spans.filter(({ beforeSeq }) => beforeSeq <= to_seq), { afterSeq: to_seq, beforeSeq: seq }]
}

/** The span that the event is in, whatever its type is. */
export const spanOf = (spans: readonly RewoundSpan[], seq: number): RewoundSpan | undefined =>
  spans.find(({ afterSeq, beforeSeq }) => afterSeq < seq && seq < beforeSeq)

/** True if the event was not rewound. */
export const holds = (
  spans: readonly RewoundSpan[],
  { seq, type }: { readonly seq: number; readonly type: string },
): boolean => HOLD_ALWAYS.has(type) || spanOf(spans, seq) === undefined
