/** Messages to the agent and its runs on the wire: post, run, pause. */
import { z } from 'zod'
import { Result } from './events/agent-events.ts'
import { ErrorType, Status, StopReason } from './events/status.ts'
import { RunSampling, ToolChoice } from './values/llm-config.ts'
import { MessageInput, UserInput } from './values/message.ts'
import { KnownSeq } from './values/known-seq.ts'
import { PermissionModeInput, RuleTexts } from './values/permission.ts'

const MAX_OUTPUT_SCHEMA_BYTES = 64 * 1024

const JsonSchema = z
  .record(z.string(), z.unknown())
  .refine((schema) => Buffer.byteLength(JSON.stringify(schema)) <= MAX_OUTPUT_SCHEMA_BYTES, {
    error: 'has more than 64 KiB as JSON',
  })

/** The schema in an update, where `null` removes it. */
export const OutputSchemaUpdate = JsonSchema.nullable()

export const OutputSchema = JsonSchema.describe(
  'JSON Schema of the final answer: `Result` has it in `structured_output`. The model has one more attempt if its answer is not valid. At most 64 KiB.',
).meta({ id: 'OutputSchema' })

const MAX_INSTRUCTIONS_BYTES = 256 * 1024

const Instructions = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_INSTRUCTIONS_BYTES, { error: 'has more than 256 KiB' })
  .describe('Follow the system prompt in this run. Its subagents do not read them. At most 256 KiB.')

export const RunOptions = z
  .strictObject({
    max_steps: z.int().min(1).max(100_000).optional().describe('Pause after this number of model answers.'),
    output_schema: OutputSchema.optional(),
    tool_choice: ToolChoice.optional().describe(
      'For the first model answer of this run. `llm_config.tool_choice` holds for the others.',
    ),
    model: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe('The model of this run. It must be of the endpoint of the conversation. Needs the scope `read`, too.'),
    permission_mode: PermissionModeInput.optional().describe(
      'The mode of this run instead of that of the conversation. Needs the scope `approve`, too.',
    ),
    allowed_tools: RuleTexts.optional().describe('More `allow` rules, for this run. Needs the scope `approve`, too.'),
    instructions: Instructions.optional(),
    ...RunSampling.shape,
  })
  .meta({ id: 'RunOptions', examples: [{ max_steps: 20 }] })
export type RunOptions = z.infer<typeof RunOptions>

export const PostMessage = z
  .strictObject({
    message: MessageInput.describe('A message, or its text.'),
    run: z.boolean().default(false).describe('Start the agent. An active run reads the message in either case.'),
    run_options: RunOptions.optional().describe(
      'The options of the run that the message starts: `run` must be true. If a run is active, nothing is stored: 409 `already_running`.',
    ),
    after_seq: KnownSeq,
    client_message_id: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe(
        'Your id of the message. The same id again in this conversation stores nothing: 200 with the first answer, also after a rewind or the withdrawal of the message, or 409 `message_exists` if the message is another one. A fork has the ids of the messages that it has.',
      ),
  })
  .meta({
    id: 'PostMessage',
    examples: [
      { message: 'Thanks. Do it once more.', run: true },
      { message: { role: 'user', content: 'Thanks. Do it once more.', sender: 'reviewer' }, run: true },
      { message: 'Thanks. Do it once more.', run: true, client_message_id: 'message-17' },
    ],
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

export const WithdrawnMessage = z
  .object({
    event_id: z.uuid().describe('The message, as `POST …/messages` returned it.'),
    seq: z.int().positive().describe('Seq of its `MessageWithdrawn` event.'),
    message: UserInput.optional().describe('To be edited and posted again. A key without `read` does not get it.'),
  })
  .meta({
    id: 'WithdrawnMessage',
    examples: [
      {
        event_id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c',
        seq: 9,
        message: { role: 'user', content: [{ type: 'text', text: 'Do it once more.' }] },
      },
    ],
  })
export type WithdrawnMessage = z.infer<typeof WithdrawnMessage>

export const StoppedSubagent = z
  .object({
    agent_id: z.uuid(),
    seq: z.int().positive().describe('Seq of its `Result` event.'),
    stop_reason: StopReason.describe('`cancelled`, unless it had ended.'),
  })
  .meta({
    id: 'StoppedSubagent',
    examples: [{ agent_id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c', seq: 31, stop_reason: 'cancelled' }],
  })
export type StoppedSubagent = z.infer<typeof StoppedSubagent>

/** Seconds. */
export const DEFAULT_WAIT_S = 600
export const WaitTimeout = z.number().positive().max(3600)

export const RunRequest = z
  .strictObject({
    ...RunOptions.shape,
    after_seq: z
      .int()
      .nonnegative()
      .optional()
      .describe(
        'Seq of the last event that the client knows. If a run has begun after it, none is started: 409 `already_continued`. Of several clients that continue a conversation, one starts the run.',
      ),
    wait: z
      .boolean()
      .default(false)
      .describe('Respond when the run has ended or waits for a client. Needs the scope `read`, too.'),
    timeout: WaitTimeout.default(DEFAULT_WAIT_S).describe('Maximum wait in seconds.'),
  })
  .meta({ id: 'RunRequest', examples: [{ wait: true, timeout: 120 }, { max_steps: 1 }] })
export type RunRequest = z.infer<typeof RunRequest>

export const RunStarted = z
  .object({ run_id: z.uuid() })
  .meta({ id: 'RunStarted', examples: [{ run_id: '0199a1f2-77aa-7c30-8e55-91b0d4f3c2aa' }] })

export const RunOutcome = z
  .object({
    run_id: z.uuid(),
    status: Status.describe('`running` if the wait timed out; the run continues.'),
    result: Result.optional().describe('Absent with status `error`: the end of the run could not be stored yet.'),
    error: z
      .object({ type: ErrorType, message: z.string() })
      .optional()
      .describe('Why the run failed, as in its `ErrorEvent`. Absent unless it failed.'),
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
        'Also end the processes of the running tool, and drop the calls of the turn that have not begun: each gets an `interrupted` result. Otherwise the tool finishes, and the remaining calls begin with the next `run`.',
      ),
  })
  .meta({ id: 'PauseRequest', examples: [{ interrupt: true }] })
export type PauseRequest = z.infer<typeof PauseRequest>

export const StatusAnswer = z.object({ status: Status }).meta({ id: 'StatusAnswer', examples: [{ status: 'paused' }] })
