/** Conversations on the wire: creation, configuration and views. */
import { z } from 'zod'
import { EarlierMessages } from './conversations/history.ts'
import { Label, MAX_LABELS, Title } from './conversations/given-fields.ts'
import { METADATA_FILTERS, MetadataFilter } from './conversations/metadata-filter.ts'
import { ForkedFiles } from './events/forked-files.ts'
import { Status } from './events/status.ts'
import { DEFAULT_ITERATIONS } from './limits/run-limits.ts'
import { KnownSeq } from './values/known-seq.ts'
import { DroppedField, LlmConfigInput } from './values/llm-config.ts'
import { MessageInput, UsageByModel } from './values/message.ts'
import { Count, Flag, MAX_COUNTED_VALUES, PageLimit, ValueCounts, listOf, repeated } from './values/page.ts'
import { PermissionMode, RuleTexts } from './values/permission.ts'
import { ProjectSource } from './project/project-settings.ts'
import { DEFAULT_WAIT_S, RunOutcome, WaitTimeout } from './run.ts'
import { Secrets } from './secret.ts'
import { fieldsOf } from './setting-fields.ts'

export const ConversationId = z.uuid().toLowerCase()

/** The ids that follow from external ids have version 8: nobody else can take them. */
const NewConversationId = ConversationId.refine((id) => id[14] !== '8', {
  error: 'must not have version 8, which is for conversations with an external_id',
})

/** `tools` absent is the default preset, `[]` none. */
export const CreateFields = z.strictObject({
  id: NewConversationId.optional().describe('A UUID. Default: a new one.'),
  ...fieldsOf('create'),
  allowed_tools: RuleTexts.optional().describe('More `allow` rules.'),
  disallowed_tools: RuleTexts.optional().describe('More `deny` rules.'),
  system_prompt: z.string().min(1).optional().describe('Replaces the default prompt of the server.'),
  system_prompt_extensions: z.array(z.string().min(1)).optional(),
  initial_message: MessageInput.optional().describe('Stored as the first message, or its text.'),
  history: EarlierMessages.optional(),
  // No defaults: they would be a part of the body that an `Idempotency-Key` of an earlier version names.
  run: z.boolean().optional().describe('Start the agent. Needs `initial_message`. Default: false.'),
  wait: z
    .boolean()
    .optional()
    .describe(
      'Respond when the run has ended or waits for a client. Needs `run`, and the scope `read`. Default: false.',
    ),
  timeout: WaitTimeout.optional().describe(`Maximum wait in seconds. Default: ${DEFAULT_WAIT_S}.`),
  secrets: Secrets.optional(),
  setting_sources: z
    .array(ProjectSource)
    .max(10)
    .optional()
    .describe('Where settings, instructions, skills and slash commands are loaded from. Default: nothing is loaded.'),
  trust_project: z
    .boolean()
    .optional()
    .describe(
      'Whether files of the workdir may give rights: `allow` rules, a mode, `allowed-tools` and hooks, which need the same scopes as `hooks`. Rules that deny or ask always hold. Default: false.',
    ),
})

export const CreateConversation = CreateFields.refine(
  ({ run, initial_message }) => !run || initial_message !== undefined,
  {
    path: ['run'],
    error: 'needs initial_message: without a message the agent has nothing to do',
  },
)
  .refine(({ history, initial_message }) => !history || initial_message !== undefined, {
    path: ['history'],
    error: 'needs initial_message, which the agent is to answer',
  })
  .refine(({ wait, run }) => !wait || run, { path: ['wait'], error: 'needs run: true' })
  .refine(({ id, external_id }) => id === undefined || external_id === undefined, {
    path: ['external_id'],
    error: 'cannot be sent together with id; leave out id',
  })
  // A part of the body that an `Idempotency-Key` of an earlier version names. A profile may have another number.
  .overwrite((request) =>
    request.profile === undefined ? { max_iteration_per_run: DEFAULT_ITERATIONS, ...request } : request,
  )
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
      { initial_message: 'Write total.sh, which adds up a CSV file.', run: true, wait: true, timeout: 120 },
      {},
    ],
  })
export type CreateConversation = z.infer<typeof CreateConversation>

export const ForkConversation = z
  .strictObject({
    at_seq: z
      .int()
      .positive()
      .optional()
      .describe(
        'The last event to copy. Default: all events. A model answer is copied only together with all its calls.',
      ),
    workdir: z
      .enum(['copy', 'share'])
      .default('copy')
      .describe(
        '`copy`: a new directory with a copy of the current content, and with `file_checkpointing` and `at_seq` with the files as of that event; `files` of the answer says which. `share`: the same directory. A directory that the server created is removed with the last conversation that shares it.',
      ),
    title: Title.optional().describe('Default: the title of the original.'),
    id: NewConversationId.optional().describe('A UUID. Default: a new one.'),
    llm_config: LlmConfigInput.optional().describe(
      'The fields that are not as in the original. Stored credentials go to no other origin, as with `PUT config`: `warnings` say what the fork has not.',
    ),
    // No default: see above.
    run: z.boolean().optional().describe('Start the agent in the fork; the answer has its `run_id`. Default: false.'),
  })
  .meta({
    id: 'ForkConversation',
    examples: [{ title: 'totals, second attempt' }, { at_seq: 2, llm_config: { model: 'gpt-5-mini' }, run: true }],
  })
export type ForkConversation = z.infer<typeof ForkConversation>
/** `PUT config` merges: absent fields are unchanged. */
export const UpdateConfig = z
  .strictObject({ ...fieldsOf('update'), after_seq: KnownSeq })
  .meta({ id: 'UpdateConfig', examples: [{ llm_config: { api_key: 'sk-example-key' }, max_iteration_per_run: 50 }] })
export type UpdateConfig = z.infer<typeof UpdateConfig>

const ConversationState = z
  .object({
    id: z.uuid(),
    agent_finished: z.boolean(),
    confirmation_mode: z.boolean(),
    permission_mode: PermissionMode,
    agent_waiting_for_confirmation: z.boolean(),
    agent_paused: z.boolean(),
    event_count: z.int().nonnegative(),
    activated_knowledge_microagents: z.array(z.string()),
  })
  .meta({ id: 'ConversationState' })

const Context = z
  .object({
    used: z
      .int()
      .nonnegative()
      .describe(
        'Tokens of the last request and its answer, as the model reported them, or an estimate after a compaction.',
      ),
    size: z.int().positive().optional().describe('Tokens that the model can read. Absent: unknown.'),
  })
  .describe('How full the context window of the model is.')
  .meta({ id: 'Context' })

export const ConversationView = z
  .object({
    id: z.uuid(),
    ...fieldsOf('shown'),
    state: ConversationState,
    status: Status,
    queued: z
      .boolean()
      .optional()
      .describe('The run waits because OPENHANDS_MAX_CONCURRENT_RUNS other runs are active.'),
    unfinished: z
      .literal(true)
      .optional()
      .describe('A request waits, a task is open, or a subagent works in the background, whatever the status is.'),
    preview: z
      .string()
      .optional()
      .describe('The beginning of the first message, in lists and in `GET /conversations/{id}`.'),
    attended: z
      .literal(true)
      .optional()
      .describe('A chat has announced in the last 30 seconds that a person has the conversation open.'),
    last_seq: z.int().nonnegative(),
    usage: UsageByModel.describe('Usage of the whole conversation, by model.'),
    context: Context,
    cost_usd: z.number().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    warnings: z.array(z.string()).optional().describe('Fields of the request that were ignored, and other warnings.'),
    run_id: z.uuid().optional().describe('The run that `run` started, in the response of the create.'),
    result: RunOutcome.shape.result.describe(
      'After a create with `wait`. Absent while `status` is `running`: the wait timed out.',
    ),
    error: RunOutcome.shape.error.describe('After a create with `wait`: why the run failed. Absent unless it failed.'),
    files: ForkedFiles.optional().describe('After a fork: which files its workdir has.'),
    dropped: z
      .array(DroppedField)
      .optional()
      .describe(
        'After a change to another origin (scheme, host and port): the stored credentials that were deleted, so that they are not sent there. After a change of the origin or of the model also its window and prices. Send them again if they are valid for the new one.',
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
          permission_mode: 'default',
          agent_waiting_for_confirmation: false,
          agent_paused: false,
          event_count: 4,
          activated_knowledge_microagents: [],
        },
        status: 'running',
        last_seq: 4,
        usage: { 'gpt-5': { input_tokens: 1200, output_tokens: 80, cached_tokens: 1000, reasoning_tokens: 0 } },
        context: { used: 1280, size: 272_000 },
        created_at: '2026-01-31T12:00:00.000Z',
        updated_at: '2026-01-31T12:00:07.250Z',
      },
    ],
  })
export type ConversationView = z.infer<typeof ConversationView>

export const ConversationPage = z
  .object({ items: z.array(ConversationView), next_page_id: z.string().nullable() })
  .meta({ id: 'ConversationPage' })

const ConversationFilter = {
  status: listOf(Status, Status.options.length)
    .optional()
    .describe('Only with one of these, with commas or by repeating the parameter.'),
  q: z.string().min(1).max(200).optional().describe('Part of the title or of the first message, case-insensitive.'),
  user_id: z.string().optional(),
  label: repeated(Label, MAX_LABELS)
    .optional()
    .describe('Only with this label. Repeat the parameter for several, which all must be there.'),
  metadata: repeated(MetadataFilter, METADATA_FILTERS.max).optional().describe(METADATA_FILTERS.about),
  model: z.string().min(1).max(200).optional().describe('Only with this model in `llm_config`.'),
  archived: Flag.optional().describe('`true`: only archived conversations. `false`: only the others. Default: all.'),
  created_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  created_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
  updated_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  updated_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
}

export const CountConversations = z.strictObject({
  ...ConversationFilter,
  by: listOf(
    z
      .enum(['status', 'label', 'model', 'user_id'])
      // Generators for Go name a constant after the value, and there is a type with the first of these names.
      .meta({ 'x-enum-varnames': ['ByStatus', 'ByLabel', 'ByModel', 'ByUserId'] }),
    4,
  )
    .optional()
    .describe('Also count those of each status, label, model or user, with commas or by repeating the parameter.'),
})
export type CountConversations = z.infer<typeof CountConversations>

export const ConversationCount = Count.extend({
  by_status: z
    .partialRecord(Status, z.int().positive())
    .optional()
    .describe('With `by`. Without those that have none.'),
  by_label: ValueCounts.describe(`The ${MAX_COUNTED_VALUES} most frequent ones first.`),
  by_model: ValueCounts,
  by_user_id: ValueCounts,
}).meta({
  id: 'ConversationCount',
  examples: [{ count: 42, by_status: { running: 2, finished: 40 }, by_label: [{ value: 'nightly', count: 12 }] }],
})
export type ConversationCount = z.infer<typeof ConversationCount>

export const ListConversations = z.strictObject({
  ...ConversationFilter,
  sort: z
    .enum(['created_at', 'updated_at'])
    .default('created_at')
    .describe('By `updated_at`, a conversation that changes while you page moves to the newest end.'),
  order: z.enum(['asc', 'desc']).default('desc'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type ListConversations = z.infer<typeof ListConversations>

export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must have 1 to 255 visible ASCII characters')
  .describe(
    'For 24 hours, requests with the same key and body are executed once and get the same response. Use it to retry after a lost response.',
  )
