/**
 * Commands that a client runs in a conversation, its shell sessions and processes: requests, responses and limits on
 * the wire.
 */
import { z } from 'zod'
import { OnlyPage, PageLimit } from './page.ts'

const DEFAULT_TIMEOUT_S = 120
const MAX_TIMEOUT_S = 24 * 60 * 60
export const CommandStatus = z
  .enum(['queued', 'running', 'exited', 'timed_out', 'killed', 'failed', 'lost'])
  .describe(
    '`queued`: waits for another command of its session. `exited`: ended by itself. `killed`: the server ended it, and `killed_by` says why. `failed`: no shell could be started. `lost`: the server was killed while it ran, and its outcome is unknown. Earlier versions wrote `timed_out` for a command that its `timeout` ended.',
  )
  .meta({ id: 'CommandStatus' })
export type CommandStatus = z.infer<typeof CommandStatus>

export const KilledBy = z
  .enum(['timeout', 'output_limit', 'request'])
  .describe(
    'Why the command was `killed`. `timeout`: it timed out. `output_limit`: it wrote more than is kept of an output stream. `request`: a client ended it or disconnected, or its session, its conversation or the server ended.',
  )
  .meta({ id: 'KilledBy' })
export type KilledBy = z.infer<typeof KilledBy>

const DEFAULT_SESSION = 'default'

const SessionId = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/,
    'must have 1 to 64 letters, digits, "_", "." or "-", and must not begin with "." or "-"',
  )

export const RunCommand = z
  .strictObject({
    command: z.string().min(1).describe('Command for bash; can have several lines.'),
    timeout: z
      .number()
      .positive()
      .max(MAX_TIMEOUT_S)
      .optional()
      .describe(`Timeout in seconds. Default: ${DEFAULT_TIMEOUT_S}, and none for background commands.`),
    session_id: SessionId.default(DEFAULT_SESSION).describe(
      'Shell session, created if it does not exist. Its directory, exports and functions are kept. `agent`: the session of the agent. `api`: an alias of `default`.',
    ),
    background: z
      .boolean()
      .default(false)
      .describe(
        'Respond as soon as the command has started. It runs in a separate shell with a copy of the state of the session, and does not block the session.',
      ),
    stdin: z.string().optional().describe('Standard input. Not stored and not shown.'),
    keep_stdin_open: z
      .boolean()
      .optional()
      .describe('Keep standard input open for `input`. Default for background commands: `true`.'),
    kill_on_disconnect: z
      .boolean()
      .default(false)
      .describe('End the command if the client disconnects before the response.'),
  })
  .refine(({ background, kill_on_disconnect }) => !background || !kill_on_disconnect, {
    path: ['kill_on_disconnect'],
    error: 'cannot be used with a background command, because the response does not wait for its end',
  })
  .meta({
    id: 'RunCommand',
    not: {
      required: ['background', 'kill_on_disconnect'],
      properties: { background: { const: true }, kill_on_disconnect: { const: true } },
    },
    examples: [
      { command: 'npm test', timeout: 300 },
      { command: 'npm run dev', background: true },
    ],
  })
export type RunCommand = z.infer<typeof RunCommand>

/** Seconds; undefined without a timeout. */
export const timeoutOf = ({ timeout, background }: RunCommand): number | undefined =>
  timeout ?? (background ? undefined : DEFAULT_TIMEOUT_S)

const Outcome = {
  exit_code: z.int().nullable().describe('Null while the command runs, or when it has no exit code.'),
  execution_time: z.number().nonnegative().describe('Seconds.'),
  cwd: z.string().describe('Working directory of the session after the command.'),
  background_pid: z.int().optional().describe('Process id of the last background process (`&`).'),
  truncated: z.boolean().describe('Whether `stdout` or `stderr` is incomplete. `output` has the complete text.'),
  timed_out: z.boolean().describe('Whether its `timeout` ended it. Its status is then `killed`.'),
  killed_by: KilledBy.optional(),
  note: z.string().optional().describe('Additional information, for example that the shell ended.'),
}

/** The outcome of a command. */
export const CommandOutcome = z
  .object({
    command_id: z.uuid(),
    status: CommandStatus,
    ...Outcome,
    stdout: z.string().describe('Long output is cut in the middle.'),
    stderr: z.string(),
  })
  .meta({
    id: 'CommandOutcome',
    examples: [
      {
        command_id: '01a1fc93-3457-753a-b22e-748986e28b76',
        status: 'exited',
        exit_code: 0,
        stdout: 'hello\n',
        stderr: '',
        execution_time: 0.017,
        cwd: '/srv/work/totals',
        truncated: false,
        timed_out: false,
      },
    ],
  })
export type CommandOutcome = z.infer<typeof CommandOutcome>

/** The response for a background command. */
export const CommandStarted = z
  .object({
    command_id: z.uuid(),
    status: CommandStatus,
    pid: z.int().optional().describe('Process id of its shell, as in `processes`.'),
  })
  .meta({ id: 'CommandStarted' })
export type CommandStarted = z.infer<typeof CommandStarted>

export const Command = z
  .object({
    id: z.uuid(),
    command: z.string(),
    session_id: z.string(),
    background: z.boolean(),
    status: CommandStatus,
    created_at: z.iso.datetime(),
    started_at: z.iso.datetime().optional(),
    ended_at: z.iso.datetime().optional(),
    pid: CommandStarted.shape.pid,
    ...Outcome,
    execution_time: Outcome.execution_time.optional(),
    cwd: Outcome.cwd.optional(),
  })
  .meta({ id: 'Command' })
export type Command = z.infer<typeof Command>

export const ListCommands = z.strictObject({
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type ListCommands = z.infer<typeof ListCommands>

export const CommandPage = z
  .object({ items: z.array(Command).describe('Newest first.'), next_page_id: z.string().nullable() })
  .meta({ id: 'CommandPage' })
export type CommandPage = z.infer<typeof CommandPage>

const MAX_OUTPUT_CHUNK = 1024 * 1024
const MAX_WAIT_S = 60

export const ReadOutput = z.strictObject({
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  offset: z.coerce.number().int().nonnegative().default(0).describe('Byte offset in the stream at which to start.'),
  max_bytes: z.coerce
    .number()
    .int()
    .min(4)
    .max(MAX_OUTPUT_CHUNK)
    .default(65_536)
    .describe('Maximum size of one response.'),
  wait: z.coerce
    .number()
    .min(0)
    .max(MAX_WAIT_S)
    .default(0)
    .describe('How long to wait, in seconds, if there is no output after `offset` yet.'),
})
export type ReadOutput = z.infer<typeof ReadOutput>

export const CommandOutput = z
  .object({
    command_id: z.uuid(),
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int().nonnegative(),
    text: z.string().describe('Bytes that are not UTF-8 become U+FFFD.'),
    next_offset: z.int().nonnegative().describe('Offset of the next read.'),
    status: CommandStatus,
    exit_code: z.int().nullable(),
    complete: z.boolean().describe('No more output will follow: the command and its background processes have ended.'),
  })
  .meta({ id: 'CommandOutput' })
export type CommandOutput = z.infer<typeof CommandOutput>

export const CommandInput = z
  .strictObject({
    text: z.string().default(''),
    eof: z.boolean().default(false).describe('Close standard input after the text.'),
  })
  .meta({ id: 'CommandInput', examples: [{ text: 'yes\n', eof: true }] })
export type CommandInput = z.infer<typeof CommandInput>

export const ShellSession = z
  .object({
    id: z.string(),
    status: z
      .enum(['busy', 'idle', 'suspended'])
      .describe('`suspended`: has no process; directory, exports and functions are kept.'),
    used_by_agent: z.boolean().describe('A tool call of the agent runs in it, so clients have to wait.'),
    cwd: z.string().optional().describe('Absent if the session was not used since the server started.'),
    pid: z.int().optional(),
  })
  .meta({ id: 'ShellSession' })
export type ShellSession = z.infer<typeof ShellSession>

export const ShellSessions = z
  .object({ items: z.array(ShellSession), next_page_id: OnlyPage })
  .meta({ id: 'ShellSessions' })

export const Process = z
  .object({
    pid: z.int().describe('Process id on the host, as used by `DELETE`.'),
    ppid: z.int(),
    command_line: z.string(),
    state: z.enum(['running', 'sleeping', 'waiting', 'stopped']),
    started_at: z.iso.datetime(),
    session_id: z.string().optional().describe('Shell session that started it.'),
    command_id: z.uuid().optional().describe('Command of a client that started it.'),
  })
  .meta({ id: 'Process' })
export type Process = z.infer<typeof Process>

export const Processes = z.object({ items: z.array(Process), next_page_id: OnlyPage }).meta({ id: 'Processes' })

export const EndProcesses = z.strictObject({
  pattern: z.string().min(1).max(1000).describe('A part of the command line, compared literally.'),
})

export const EndedProcesses = z
  .object({ ended: z.array(Process).describe('The matching processes and their children. All of them have ended.') })
  .meta({ id: 'EndedProcesses' })
export type EndedProcesses = z.infer<typeof EndedProcesses>
