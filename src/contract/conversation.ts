/** Conversations on the wire: how one is made and configured, and what is told about it. */
import { z } from 'zod'
import { Result, Status } from './event.ts'
import { LlmConfig, LlmConfigInput } from './llm-config.ts'
import { UsageByModel, UserInput } from './message.ts'
import { Secrets } from './secret.ts'

export const ConversationId = z.uuid().toLowerCase()

const Title = z.string().min(1).max(200)
const MaxIterations = z.int().min(1).max(100_000).describe('Model answers one run may take.')
const MaxSeconds = z.number().positive().max(2_592_000).describe('Seconds one run may take; unlimited when unset.')
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
    metadata: z.record(z.string(), z.unknown()).optional(),
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
  })
  .meta({ id: 'CreateConversation' })
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
        '`copy`: a directory of its own, with what is in the original’s now. `share`: the same directory; it goes with the conversation that it was made for.',
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
    llm_config: LlmConfigInput.optional(),
    max_iteration_per_run: MaxIterations.optional(),
    max_seconds_per_run: MaxSeconds.optional(),
    visualize: z.boolean().optional(),
  })
  .meta({ id: 'UpdateConfig' })
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
    metadata: z.record(z.string(), z.unknown()).optional(),
    workdir: z.string(),
    llm_config: LlmConfig.describe('Secret values masked.'),
    tools: z.array(z.string()),
    max_iteration_per_run: z.int(),
    max_seconds_per_run: z.number().optional(),
    state: ConversationState,
    status: Status,
    last_seq: z.int().nonnegative(),
    usage: UsageByModel.describe('Of the whole conversation, by model.'),
    cost_usd: z.number().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    warnings: z.array(z.string()).optional().describe('What was understood in the request and is not used.'),
  })
  .meta({ id: 'Conversation' })
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

export const Count = z.object({ count: z.int().nonnegative() }).meta({ id: 'Count' })

export const PostMessage = z
  .strictObject({
    message: UserInput,
    run: z
      .boolean()
      .default(false)
      .describe('Whether the agent shall run. A run that goes on reads the message either way.'),
  })
  .meta({ id: 'PostMessage' })
export type PostMessage = z.infer<typeof PostMessage>

export const PostedMessage = z
  .object({ event_id: z.uuid(), seq: z.int().positive(), run_id: z.uuid().optional() })
  .meta({ id: 'PostedMessage' })
export type PostedMessage = z.infer<typeof PostedMessage>

export const RunRequest = z
  .strictObject({
    max_steps: z.int().min(1).max(100_000).optional().describe('Pause after so many model answers.'),
    wait: z.boolean().default(false).describe('Answer when the run has ended or waits for you.'),
    timeout: z.number().positive().max(3600).default(600).describe('Seconds to wait at most.'),
  })
  .meta({ id: 'RunRequest' })
export type RunRequest = z.infer<typeof RunRequest>

export const RunStarted = z.object({ run_id: z.uuid() }).meta({ id: 'RunStarted' })

export const RunOutcome = z
  .object({
    run_id: z.uuid(),
    status: Status.describe('`running` when the wait timed out; the run goes on.'),
    result: Result.optional(),
  })
  .meta({ id: 'RunOutcome' })
export type RunOutcome = z.infer<typeof RunOutcome>

export const PauseRequest = z
  .strictObject({
    interrupt: z
      .boolean()
      .default(false)
      .describe("Also end the running tool's processes; without it the tool finishes."),
  })
  .meta({ id: 'PauseRequest' })
export type PauseRequest = z.infer<typeof PauseRequest>

export const StatusAnswer = z.object({ status: Status }).meta({ id: 'StatusAnswer' })
