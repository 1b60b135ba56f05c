/** Tasks: background work that clients post and follow by id, in the log and on the wire. */
import { z } from 'zod'
import { KilledBy } from './command.ts'
import { KnownSeq } from './known-seq.ts'
import { MessageInput, UserInput } from './message.ts'
import { PageLimit } from './page.ts'

export const TaskStatus = z.enum(['pending', 'running', 'completed', 'error', 'cancelled']).meta({ id: 'TaskStatus' })
export type TaskStatus = z.infer<typeof TaskStatus>

/** Maximum ticks of a Ticker, and maximum seconds between two of them. */
const MAX_TICKS = 3600
const [MIN_INTERVAL, MAX_INTERVAL] = [0.1, 3600]
/** A day, in seconds. */
const MAX_COMMAND_SECONDS = 86_400

const AgentRun = z
  .strictObject({ type: z.literal('AgentRun'), message: UserInput.describe('The message to the agent.') })
  .meta({ id: 'AgentRun' })

const CommandTask = z
  .strictObject({
    type: z.literal('Command'),
    command: z.string().min(1).max(100_000),
    timeout: z.number().positive().max(MAX_COMMAND_SECONDS).default(3600).describe('Timeout in seconds.'),
  })
  .meta({ id: 'CommandTask' })

const Ticker = z
  .strictObject({
    type: z.literal('Ticker'),
    interval: z.number().min(MIN_INTERVAL).max(MAX_INTERVAL).default(1).describe('Seconds between two ticks.'),
    count: z.int().min(1).max(MAX_TICKS).default(10).describe('Number of ticks.'),
  })
  .meta({ id: 'Ticker' })

/** What a task does: a run of the agent, a command in a shell, or a ticker that only reports progress. */
export const Runnable = z.discriminatedUnion('type', [AgentRun, CommandTask, Ticker]).meta({ id: 'Runnable' })
export type Runnable = z.infer<typeof Runnable>

export const TaskProgress = z
  .object({ done: z.int().nonnegative(), total: z.int().positive() })
  .meta({ id: 'TaskProgress' })
export type TaskProgress = z.infer<typeof TaskProgress>

const AgentRunResult = z
  .object({
    type: z.literal('AgentRun'),
    run_id: z.uuid().optional().describe('The last run of the task. Its `Result` event has the details.'),
    final_text: z.string(),
  })
  .meta({ id: 'AgentRunResult' })

const CommandTaskResult = z
  .object({
    type: z.literal('Command'),
    exit_code: z.int().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    cwd: z.string(),
    execution_time: z.number().nonnegative().describe('Seconds.'),
    timed_out: z.boolean().describe('Whether its `timeout` ended it.'),
    killed_by: KilledBy.optional(),
    truncated: z.boolean().describe('Whether the output is incomplete.'),
  })
  .meta({ id: 'CommandTaskResult' })
export type CommandTaskResult = z.infer<typeof CommandTaskResult>

const TickerResult = z.object({ type: z.literal('Ticker'), ticks: z.int().nonnegative() }).meta({ id: 'TickerResult' })

export const TaskResult = z
  .discriminatedUnion('type', [AgentRunResult, CommandTaskResult, TickerResult])
  .meta({ id: 'TaskResult' })
export type TaskResult = z.infer<typeof TaskResult>

const Title = z.string().min(1).max(200)

const NewAgentRun = AgentRun.extend({ message: MessageInput.describe('The message to the agent, or its text.') }).meta({
  id: 'NewAgentRun',
})
const NewRunnable = z.discriminatedUnion('type', [NewAgentRun, CommandTask, Ticker]).meta({ id: 'NewRunnable' })

export const PostTask = z.strictObject({ title: Title, runnable: NewRunnable, after_seq: KnownSeq }).meta({
  id: 'PostTask',
  examples: [{ title: 'Tests', runnable: { type: 'AgentRun', message: 'Run the tests.' } }],
})
export type PostTask = z.infer<typeof PostTask>

export const Task = z
  .object({
    id: z.uuid(),
    title: z.string(),
    status: TaskStatus,
    runnable: Runnable,
    run_id: z.uuid().optional().describe('The current or last run of the agent for this task.'),
    progress: TaskProgress.optional(),
    result: TaskResult.optional(),
    message: z.string().optional().describe('Reason of the outcome, if needed.'),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Task' })
export type Task = z.infer<typeof Task>

export const TaskPage = z.object({ items: z.array(Task), next_page_id: z.string().nullable() }).meta({ id: 'TaskPage' })

export const ListTasks = z.strictObject({
  status: TaskStatus.optional(),
  order: z.enum(['asc', 'desc']).default('desc').describe('Sort by creation time.'),
  limit: PageLimit,
  page_id: z
    .string()
    .optional()
    .describe(
      '`next_page_id` of the previous page. A page can have fewer items than `limit` and still have a next page.',
    ),
})
export type ListTasks = z.infer<typeof ListTasks>
