/** Replays on the wire: forks of conversations that do their work once more, with other models, and a table of how they ended. */
import { z } from 'zod'
import { ConversationId } from './conversation.ts'
import { Result } from './events/agent-events.ts'
import { StopReason } from './events/status.ts'
import { CommandStatus } from './values/command.ts'
import { LlmConfigInput } from './values/llm-config.ts'
import { NetworkPolicy } from './values/network.ts'
import { PageLimit } from './values/page.ts'
import { PermissionModeInput } from './values/permission.ts'
import { TaskProgress, TaskStatus } from './values/task.ts'

/** Forks of one replay: each is a copy of a workdir. */
const MAX_REPLAY_FORKS = 100
/** Seconds: a day, and 30 days. */
const [DEFAULT_KEEP_S, MAX_KEEP_S] = [86_400, 30 * 86_400]
const DEFAULT_CHECK_S = 600

/** What holds for all forks. */
export const ReplayPlan = z.object({
  llm_configs: z
    .array(LlmConfigInput)
    .min(1)
    .max(MAX_REPLAY_FORKS)
    .optional()
    .describe('Each is compared: the fields that are not as in the original, as in a fork. Default: as the original.'),
  check: z
    .strictObject({
      command: z.string().min(1).max(100_000),
      timeout: z.number().positive().max(86_400).default(DEFAULT_CHECK_S).describe('Timeout in seconds.'),
    })
    .optional()
    .describe('Runs in each fork at its end; the table has its exit code. Needs the scope `commands`.'),
  max_cost_usd: z.number().positive().describe('For all forks together.'),
  permission_mode: PermissionModeInput.optional().describe(
    `${PermissionModeInput.description} Default: \`deny\`. Needs the scope \`approve\`.`,
  ),
  network: NetworkPolicy.optional().describe(
    'Hosts that commands of the forks may reach. Default: none. Needs the scope `approve`.',
  ),
  mcp_servers: z
    .array(z.string().min(1))
    .max(100)
    .default([])
    .describe('Names of MCP servers of the originals that the forks use. All others are left out.'),
  keep: z
    .int()
    .nonnegative()
    .max(MAX_KEEP_S)
    .default(DEFAULT_KEEP_S)
    .describe('Seconds after the end until the forks are deleted. The table remains.'),
})
export type ReplayPlan = z.infer<typeof ReplayPlan>

export const CreateReplay = z
  .strictObject({
    conversation_ids: z
      .array(ConversationId)
      .min(1)
      .max(MAX_REPLAY_FORKS)
      .refine((ids) => new Set(ids).size === ids.length, { error: 'has an id twice' })
      .meta({ uniqueItems: true }),
    at: z
      .union([z.enum(['first_message', 'last_message']), z.int().positive()])
      .default('last_message')
      .describe('Where the forks begin: the message that they answer once more, or the seq of an event.'),
    repeat: z.int().min(1).max(MAX_REPLAY_FORKS).default(1).describe('How often each is tried.'),
    ...ReplayPlan.shape,
  })
  .refine(
    ({ conversation_ids, llm_configs, repeat }) =>
      conversation_ids.length * (llm_configs?.length ?? 1) * repeat <= MAX_REPLAY_FORKS,
    { path: ['repeat'], error: `conversation_ids, llm_configs and repeat make more than ${MAX_REPLAY_FORKS} forks` },
  )
  .meta({
    id: 'CreateReplay',
    examples: [
      { conversation_ids: ['0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1'], max_cost_usd: 2 },
      {
        conversation_ids: ['0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1'],
        llm_configs: [{}, { model: 'gpt-5-mini' }],
        repeat: 3,
        check: { command: 'npm test' },
        max_cost_usd: 2,
      },
    ],
  })
export type CreateReplay = z.infer<typeof CreateReplay>

export const ReplayRow = z
  .object({
    from_conversation_id: z.uuid(),
    at_seq: z.int().positive().describe('The last event that was copied.'),
    llm_config: z.int().nonnegative().describe('Index in `llm_configs`.'),
    attempt: z.int().positive().describe('From 1 to `repeat`.'),
    conversation_id: z.uuid().describe('The fork. It is in no list, and is deleted after `keep`.'),
    status: TaskStatus,
    outcome: z
      .enum([...StopReason.options, 'waiting'])
      .optional()
      .describe('Why its last run ended. `waiting`: it asked for something, and nobody answers a replay.'),
    model: z.string().optional(),
    files: z
      .enum(['snapshot', 'now', 'shared'])
      .optional()
      .describe('Which files it began with: those of the moment, or of now because there is no snapshot.'),
    steps: z.int().nonnegative().optional(),
    input_tokens: z.int().nonnegative().optional(),
    output_tokens: z.int().nonnegative().optional(),
    cost_usd: z.number().nonnegative().optional(),
    duration_ms: z.number().nonnegative().optional(),
    changes: Result.shape.changes,
    check: z
      .object({ status: CommandStatus, exit_code: z.int().nullable() })
      .optional()
      .describe('How the command of `check` ended.'),
    message: z.string().optional().describe('What went wrong.'),
  })
  .meta({ id: 'ReplayRow' })
export type ReplayRow = z.infer<typeof ReplayRow>

const ReplayHead = z.object({
  id: z.uuid(),
  status: TaskStatus,
  progress: TaskProgress,
  max_cost_usd: z.number(),
  cost_usd: z.number().describe('Of all forks so far.'),
  keep_until: z.iso.datetime().optional().describe('When the forks are deleted, after the end.'),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
})

export const Replay = ReplayHead.extend({ rows: z.array(ReplayRow) }).meta({
  id: 'Replay',
  examples: [
    {
      id: '0199a1f3-1b2c-7d12-9b1a-2f6d8c40a7e1',
      status: 'completed',
      progress: { done: 1, total: 1 },
      max_cost_usd: 2,
      cost_usd: 0.0124,
      keep_until: '2026-02-01T12:02:00.000Z',
      created_at: '2026-01-31T12:00:00.000Z',
      updated_at: '2026-01-31T12:02:00.000Z',
      rows: [
        {
          from_conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
          at_seq: 2,
          llm_config: 0,
          attempt: 1,
          conversation_id: '0199a1f3-1b2d-7d12-9b1a-2f6d8c40a7e1',
          status: 'completed',
          outcome: 'completed',
          model: 'gpt-5-mini',
          files: 'snapshot',
          steps: 3,
          input_tokens: 2600,
          output_tokens: 210,
          cost_usd: 0.0124,
          duration_ms: 9400,
          changes: { files: 1, added: 4, removed: 0 },
          check: { status: 'exited', exit_code: 0 },
        },
      ],
    },
  ],
})
export type Replay = z.infer<typeof Replay>

export const ListReplays = z.strictObject({
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type ListReplays = z.infer<typeof ListReplays>

export const ReplayPage = z
  .object({
    items: z.array(ReplayHead.meta({ id: 'ReplaySummary' })).describe('Newest first, without their rows.'),
    next_page_id: z.string().nullable(),
  })
  .meta({ id: 'ReplayPage' })
export type ReplayPage = z.infer<typeof ReplayPage>
