/** Conversations on the wire: how one is made and configured, and what is told about it. */
import { z } from 'zod'
import { Result, Status } from './event.ts'
import { DroppedCredential, LlmConfig, LlmConfigInput } from './llm-config.ts'
import { UsageByModel, UserInput } from './message.ts'
import { RequestedLimits } from './resource-limits.ts'
import { NetworkPolicy } from './network.ts'
import { Secrets } from './secret.ts'

export const ConversationId = z.uuid().toLowerCase()

const Title = z.string().min(1).max(200)
const MaxIterations = z.int().min(1).max(100_000).describe('Model answers one run may take.')
const MaxSeconds = z.number().positive().max(2_592_000).describe('Seconds one run may take; unlimited when unset.')
/** It is in memory for as long as the conversation is open. */
const MAX_METADATA_BYTES = 64 * 1024
const Metadata = z.record(z.string(), z.unknown()).describe('Anything of your own, kept as it is.')
const NewMetadata = Metadata.refine(
  (metadata) => new TextEncoder().encode(JSON.stringify(metadata)).length <= MAX_METADATA_BYTES,
  {
    error: 'has more than 64 KiB as JSON; keep it elsewhere and store a reference',
  },
).describe('Anything of your own, kept as it is: at most 64 KiB as JSON.')
const Workdir = z
  .string()
  .min(1)
  .max(4096)
  .describe('Absolute, or relative to OPENHANDS_WORKDIR_BASE. Made, and removed with the conversation, when not given.')

/** `tools` absent is the default preset, `[]` none. */
export const CreateConversation = z
  .strictObject({
    id: ConversationId.optional().describe('A UUID of your own; one is made when not given.'),
    title: Title.optional(),
    user_id: z.string().max(200).optional(),
    metadata: NewMetadata.optional(),
    workdir: Workdir.optional(),
    llm_config: LlmConfigInput.optional().describe('Absent: LLM_MODEL, LLM_API_KEY and LLM_BASE_URL of the server.'),
    tools: z
      .array(z.string())
      .max(100)
      .optional()
      .describe(
        'Names of tools; those of other agent servers, such as `execute_bash`, are understood. Absent: the default preset; `[]`: none.',
      ),
    max_iteration_per_run: MaxIterations.default(500),
    max_seconds_per_run: MaxSeconds.optional(),
    confirmation_mode: z.boolean().optional().describe('Whether calls of tools wait for a decision.'),
    system_prompt: z.string().min(1).optional().describe("Replaces the server's own."),
    system_prompt_extensions: z.array(z.string().min(1)).optional(),
    microagents: z.array(z.string().min(1)).optional().describe('Texts appended after the extensions.'),
    initial_message: UserInput.optional().describe('Posted at once, without running.'),
    resume_on_start: z
      .boolean()
      .optional()
      .describe('Whether a run that a stop of the server cut off goes on at the next start.'),
    visualize: z.boolean().optional().describe("Readable event lines in the server's log."),
    secrets: Secrets.optional(),
    limits: RequestedLimits.optional(),
    network: NetworkPolicy.optional().describe('What its commands may reach. Absent: OPENHANDS_NETWORK of the server.'),
  })
  .meta({
    id: 'CreateConversation',
    examples: [
      {
        title: 'totals',
        llm_config: { model: 'gpt-5', api_key: 'sk-example-key', base_url: 'https://api.openai.com/v1' },
        tools: ['Bash', 'FileEditor'],
        confirmation_mode: true,
        secrets: { GITHUB_TOKEN: 'ghp_example-value' },
        initial_message: { role: 'user', content: 'Write total.sh, which adds up a CSV file.' },
      },
      {},
    ],
  })
export type CreateConversation = z.infer<typeof CreateConversation>

/** Fields of `POST /conversations` that the agreed API has and this version of the server has not: refused by name. */
export const LATER_FIELDS: ReadonlySet<string> = new Set([
  'permission_mode',
  'allowed_tools',
  'disallowed_tools',
  'tool_config',
  'hooks',
  'agents',
  'mcp',
  'setting_sources',
])

export const ForkConversation = z
  .strictObject({
    at_seq: z
      .int()
      .positive()
      .optional()
      .describe(
        'The last event that is copied; all of them when absent. An answer of the model is not parted from its calls: it is left out where some would be missing.',
      ),
    workdir: z
      .enum(['copy', 'share'])
      .default('copy')
      .describe(
        '`copy`: a directory of its own, with what is in the original’s now. `share`: the same directory. One that the server made is removed with the last conversation that shares it.',
      ),
    title: Title.optional().describe('That of the original when absent.'),
    id: ConversationId.optional().describe('A UUID of your own; one is made when not given.'),
  })
  .meta({ id: 'ForkConversation' })
export type ForkConversation = z.infer<typeof ForkConversation>

/** `PUT config` merges: what is absent stays. */
export const UpdateConfig = z
  .strictObject({
    title: Title.optional(),
    workdir: Workdir.optional().describe('Only while the agent is not running.'),
    llm_config: LlmConfigInput.optional().describe(
      'The fields that change. Where they lead to another origin (by `base_url`, or by the model’s provider), stored credentials that are not sent again are deleted: see `dropped`.',
    ),
    max_iteration_per_run: MaxIterations.optional(),
    max_seconds_per_run: MaxSeconds.optional(),
    visualize: z.boolean().optional(),
    network: NetworkPolicy.optional().describe(
      'The whole policy, in place of the one there is. It holds at once, also for connections that are open; another mode only while the agent is not running, and ends the shells.',
    ),
  })
  .meta({ id: 'UpdateConfig', examples: [{ llm_config: { api_key: 'sk-example-key' }, max_iteration_per_run: 50 }] })
export type UpdateConfig = z.infer<typeof UpdateConfig>

export const ConversationState = z
  .object({
    id: z.uuid(),
    agent_finished: z.boolean(),
    confirmation_mode: z.boolean(),
    agent_waiting_for_confirmation: z.boolean(),
    agent_paused: z.boolean(),
    event_count: z.int().nonnegative(),
    activated_knowledge_microagents: z.array(z.string()),
  })
  .meta({ id: 'ConversationState' })

export const Conversation = z
  .object({
    id: z.uuid(),
    title: z.string().optional(),
    user_id: z.string().optional(),
    metadata: Metadata.optional(),
    workdir: z.string(),
    llm_config: LlmConfig.describe('Secret values masked.'),
    tools: z.array(z.string()),
    network: NetworkPolicy.optional().describe('Absent: OPENHANDS_NETWORK of the server.'),
    max_iteration_per_run: z.int(),
    max_seconds_per_run: z.number().optional(),
    limits: RequestedLimits.optional().describe('As it was made with; `agent-info` shows what is in force.'),
    state: ConversationState,
    status: Status,
    queued: z
      .boolean()
      .optional()
      .describe('The run waits for its turn: as many others work as OPENHANDS_MAX_CONCURRENT_RUNS allows.'),
    last_seq: z.int().nonnegative(),
    usage: UsageByModel.describe('Of the whole conversation, by model.'),
    cost_usd: z.number().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    warnings: z.array(z.string()).optional().describe('What was understood in the request and is not used.'),
    dropped: z
      .array(DroppedCredential)
      .optional()
      .describe(
        'After an update that leads to another origin (scheme, host and port): the stored credentials that were deleted and not sent there. Send them again if they are for the new one.',
      ),
  })
  .meta({
    id: 'Conversation',
    examples: [
      {
        id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        title: 'totals',
        workdir: '/data/work/0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        llm_config: { model: 'gpt-5', api_key: '**********', base_url: 'https://api.openai.com/v1' },
        tools: ['Bash', 'FileEditor'],
        max_iteration_per_run: 500,
        state: {
          id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
          agent_finished: false,
          confirmation_mode: true,
          agent_waiting_for_confirmation: false,
          agent_paused: false,
          event_count: 4,
          activated_knowledge_microagents: [],
        },
        status: 'running',
        last_seq: 4,
        usage: { 'gpt-5': { input_tokens: 1200, output_tokens: 80, cached_tokens: 1000, reasoning_tokens: 0 } },
        created_at: '2026-01-31T12:00:00.000Z',
        updated_at: '2026-01-31T12:00:07.250Z',
      },
    ],
  })
export type Conversation = z.infer<typeof Conversation>

export const ConversationPage = z
  .object({ items: z.array(Conversation), next_page_id: z.string().nullable() })
  .meta({ id: 'ConversationPage' })

const ConversationFilter = {
  status: Status.optional(),
  q: z.string().min(1).max(200).optional().describe('Part of the title or of the first message, in any case.'),
  user_id: z.string().optional(),
  created_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  created_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
  updated_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  updated_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
}

export const PageLimit = z.coerce.number().int().min(1).max(1000).default(100)

export const CountConversations = z.strictObject(ConversationFilter)
export type CountConversations = z.infer<typeof CountConversations>

export const ListConversations = z.strictObject({
  ...ConversationFilter,
  order: z.enum(['asc', 'desc']).default('desc').describe('By time of creation.'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
})
export type ListConversations = z.infer<typeof ListConversations>

export const Count = z.object({ count: z.int().nonnegative() }).meta({ id: 'Count', examples: [{ count: 42 }] })

export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'has 1 to 255 visible ASCII characters')
  .describe('Send the same again, after a lost answer, to get that answer: for a day, the request is carried out once.')

export const PostMessage = z
  .strictObject({
    message: UserInput,
    run: z
      .boolean()
      .default(false)
      .describe('Whether the agent shall run. A run that goes on reads the message either way.'),
  })
  .meta({
    id: 'PostMessage',
    examples: [{ message: { role: 'user', content: 'Thanks. Do it once more.' }, run: true }],
  })
export type PostMessage = z.infer<typeof PostMessage>

export const PostedMessage = z
  .object({ event_id: z.uuid(), seq: z.int().positive(), run_id: z.uuid().optional() })
  .meta({
    id: 'PostedMessage',
    examples: [
      { event_id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c', seq: 7, run_id: '0199a1f2-77aa-7c30-8e55-91b0d4f3c2aa' },
    ],
  })
export type PostedMessage = z.infer<typeof PostedMessage>

export const RunRequest = z
  .strictObject({
    max_steps: z.int().min(1).max(100_000).optional().describe('Pause after so many model answers.'),
    wait: z.boolean().default(false).describe('Answer when the run has ended or waits for you.'),
    timeout: z.number().positive().max(3600).default(600).describe('Seconds to wait at most.'),
  })
  .meta({ id: 'RunRequest', examples: [{ wait: true, timeout: 120 }, { max_steps: 1 }] })
export type RunRequest = z.infer<typeof RunRequest>

export const RunStarted = z
  .object({ run_id: z.uuid() })
  .meta({ id: 'RunStarted', examples: [{ run_id: '0199a1f2-77aa-7c30-8e55-91b0d4f3c2aa' }] })

export const RunOutcome = z
  .object({
    run_id: z.uuid(),
    status: Status.describe('`running` when the wait timed out; the run goes on.'),
    result: Result.optional().describe('Absent with status `error`: the disk did not take the end of the run yet.'),
  })
  .meta({
    id: 'RunOutcome',
    examples: [
      {
        run_id: '0199a1f2-77aa-7c30-8e55-91b0d4f3c2aa',
        status: 'idle',
        result: {
          id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c',
          seq: 12,
          timestamp: '2026-01-31T12:00:09.500Z',
          conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
          version: 1,
          source: 'environment',
          type: 'Result',
          run_id: '0199a1f2-77aa-7c30-8e55-91b0d4f3c2aa',
          final_text: 'total.sh adds up the second column.',
          usage: { 'gpt-5': { input_tokens: 2600, output_tokens: 210, cached_tokens: 2100, reasoning_tokens: 0 } },
          stop_reason: 'completed',
          steps: 3,
          duration_ms: 9400,
          session_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        },
      },
    ],
  })
export type RunOutcome = z.infer<typeof RunOutcome>

export const PauseRequest = z
  .strictObject({
    interrupt: z
      .boolean()
      .default(false)
      .describe(
        "Also end the running tool's processes, and give up the calls of the turn that have not begun: each gets an `interrupted` result. Without it the tool finishes, and the calls begin with the next `run`.",
      ),
  })
  .meta({ id: 'PauseRequest', examples: [{ interrupt: true }] })
export type PauseRequest = z.infer<typeof PauseRequest>

export const StatusAnswer = z.object({ status: Status }).meta({ id: 'StatusAnswer', examples: [{ status: 'paused' }] })
