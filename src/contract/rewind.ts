/** How a conversation goes back to an earlier event, on the wire. */
import { z } from 'zod'
import { WorkspaceSnapshot } from './events/conversation-events.ts'
import { ClosedByRewind } from './events/rewound.ts'
import { Flag } from './values/page.ts'
import { Process } from './values/command.ts'

/** No field has a default: that would change the hash of a repeated request. */
export const RewindRequest = z
  .strictObject({
    to_seq: z
      .int()
      .positive()
      .describe(
        'The last event that holds afterwards: the end of a message, or of a turn with the results of its calls. To take a message back, name the event before it.',
      ),
    last_seq: z
      .int()
      .positive()
      .describe(
        'The last event that the client knows. If somebody has sent something after it: 409 `conversation_changed`.',
      ),
    conversation: z.boolean().optional().describe('Take the conversation back. Default: true.'),
    files: z
      .boolean()
      .optional()
      .describe(
        'Restore the files of the workdir and the additional directories as they were after `to_seq`, which needs `file_checkpointing` and the scope `files`. Default: false.',
      ),
    force: z
      .boolean()
      .optional()
      .describe(
        'Also restore files that somebody has changed since the last snapshot, or while another conversation works in the directory. Needs the scope `approve`.',
      ),
    end_processes: z
      .boolean()
      .optional()
      .describe(
        'Also end the processes that the agent left in the background. Without it they are listed and still run.',
      ),
  })
  .meta({
    id: 'RewindRequest',
    not: {
      required: ['conversation'],
      properties: { conversation: { const: false }, files: { const: false } },
    },
    examples: [{ to_seq: 7, last_seq: 31 }],
  })
export type RewindRequest = z.infer<typeof RewindRequest>

export const RewindQuery = z.strictObject({
  dry_run: Flag.optional().describe('Change nothing, and answer what would change.'),
})

const LeftOutPath = WorkspaceSnapshot.shape.left_out.element

export const RewindOutcome = z
  .object({
    event_id: z.uuid().optional().describe('The `Rewound` event. Absent in a dry run.'),
    seq: z.int().positive().optional().describe('Its seq. Absent in a dry run.'),
    to_seq: z.int().positive(),
    closed: ClosedByRewind.describe('What worked or waited, and ends.'),
    files: z
      .object({
        snapshot_id: z.uuid().describe('The snapshot with the files as they were after `to_seq`.'),
        changed: z.array(z.string()).describe('Paths that are written.'),
        removed: z.array(z.string()).describe('Paths that a later snapshot has, and this one does not.'),
        insertions: z
          .int()
          .nonnegative()
          .optional()
          .describe('Lines that the restore adds. Absent if counting takes longer than 10 seconds.'),
        deletions: z
          .int()
          .nonnegative()
          .optional()
          .describe('Lines that the restore removes. Absent if counting takes longer than 10 seconds.'),
        changed_since: z.array(z.string()).describe('Paths that have changed since the last snapshot.'),
        left_out: z.array(LeftOutPath).describe('Paths that no restore touches.'),
        failed: z.array(z.object({ path: z.string(), reason: z.string() })).describe('Paths that stay as they are.'),
      })
      .optional()
      .describe('What is restored, with `files`. The same request again does not get it.'),
    processes: z
      .array(Process)
      .optional()
      .describe(
        'The processes of the agent that were in the background. A key without `read` does not get them, nor does the same request again.',
      ),
  })
  .meta({
    id: 'RewindOutcome',
    examples: [
      {
        event_id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c',
        seq: 32,
        to_seq: 7,
        closed: { requests: [], tasks: [], subagents: [] },
        processes: [],
      },
    ],
  })
export type RewindOutcome = z.infer<typeof RewindOutcome>
