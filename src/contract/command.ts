/** Commands that a client runs in a conversation, its shell sessions and processes: requests, answers and limits on the wire. */
import { z } from 'zod'
import { CommandStatus, KilledBy } from './command-status.ts'
import { PageLimit } from './conversation.ts'

const DEFAULT_TIMEOUT_S = 120
const MAX_TIMEOUT_S = 24 * 60 * 60
/** The session of who names none. */
export const DEFAULT_SESSION = 'default'

const SessionId = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/,
    'has 1 to 64 letters, digits, "_", "." or "-", and begins with none of the last two',
  )

export const RunCommand = z
  .strictObject({
    command: z.string().min(1).describe('What bash is to run; several lines are fine.'),
    timeout: z
      .number()
      .positive()
      .max(MAX_TIMEOUT_S)
      .optional()
      .describe(
        `Seconds after its start at which the server kills the command. ${DEFAULT_TIMEOUT_S} when absent; none for one in the background.`,
      ),
    session_id: SessionId.default(DEFAULT_SESSION).describe(
      'The shell session it runs in, made when it is new; its directory, exports and functions stay. `agent` is that of the agent itself; `api` is another name of `default`.',
    ),
    background: z
      .boolean()
      .default(false)
      .describe(
        'Answers once the command has started. It runs in a shell of its own, which begins as the session stands, and does not hold the session up.',
      ),
    stdin: z.string().optional().describe('What it reads on standard input. Neither stored nor shown.'),
    keep_stdin_open: z
      .boolean()
      .optional()
      .describe('Whether more may be sent to `input` afterwards. `true` when absent for one in the background.'),
    kill_on_disconnect: z
      .boolean()
      .default(false)
      .describe('Whether it is ended when the client goes away before the answer.'),
  })
  .refine(({ background, kill_on_disconnect }) => !background || !kill_on_disconnect, {
    path: ['kill_on_disconnect'],
    error: 'means nothing for a command in the background: nobody waits for its end',
  })
  .meta({
    id: 'RunCommand',
    examples: [
      { command: 'npm test', timeout: 300 },
      { command: 'npm run dev', background: true },
    ],
  })
export type RunCommand = z.infer<typeof RunCommand>

/** Seconds; undefined is none. */
export const timeoutOf = ({ timeout, background }: RunCommand): number | undefined =>
  timeout ?? (background ? undefined : DEFAULT_TIMEOUT_S)

const Outcome = {
  exit_code: z.int().nullable().describe('Null when there is none (yet).'),
  execution_time: z.number().nonnegative().describe('Seconds.'),
  cwd: z.string().describe('Where the session stands afterwards.'),
  background_pid: z.int().optional().describe('Of a trailing `&`: the last process it put into the background.'),
  truncated: z.boolean().describe('Whether something was left out of `stdout` or `stderr`; `output` has all of it.'),
  timed_out: z.boolean().describe('Whether its `timeout` ended it; then it is `killed`.'),
  killed_by: KilledBy.optional(),
  note: z.string().optional().describe('What there is to know besides, such as that the shell ended.'),
}

/** What a command came to. */
export const CommandOutcome = z
  .object({
    command_id: z.uuid(),
    status: CommandStatus,
    ...Outcome,
    stdout: z.string().describe('Its beginning and its end, when it is long.'),
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

/** The answer for a command in the background. */
export const CommandStarted = z
  .object({
    command_id: z.uuid(),
    status: CommandStatus,
    pid: z.int().optional().describe('Of the shell it runs in, as `processes` shows it.'),
  })
  .meta({ id: 'CommandStarted' })
export type CommandStarted = z.infer<typeof CommandStarted>

export const Command = z
  .object({
    command_id: z.uuid(),
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
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
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
  offset: z.coerce.number().int().nonnegative().default(0).describe('Bytes of the stream to pass over.'),
  max_bytes: z.coerce.number().int().min(4).max(MAX_OUTPUT_CHUNK).default(65_536).describe('Of one answer.'),
  wait: z.coerce
    .number()
    .min(0)
    .max(MAX_WAIT_S)
    .default(0)
    .describe('Seconds to wait for more when there is nothing behind `offset` yet.'),
})
export type ReadOutput = z.infer<typeof ReadOutput>

export const CommandOutput = z
  .object({
    command_id: z.uuid(),
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int().nonnegative(),
    text: z.string().describe('Bytes that are not UTF-8 become U+FFFD.'),
    next_offset: z.int().nonnegative().describe('Where to read on.'),
    status: CommandStatus,
    exit_code: z.int().nullable(),
    complete: z
      .boolean()
      .describe(
        'Nothing follows `next_offset` and nothing will: the command has ended, and so has all that it left behind.',
      ),
  })
  .meta({ id: 'CommandOutput' })
export type CommandOutput = z.infer<typeof CommandOutput>

export const CommandInput = z
  .strictObject({
    text: z.string().default(''),
    eof: z.boolean().default(false).describe('Closes standard input behind the text.'),
  })
  .meta({ id: 'CommandInput' })
export type CommandInput = z.infer<typeof CommandInput>

export const ShellSession = z
  .object({
    session_id: z.string(),
    status: z
      .enum(['busy', 'idle', 'suspended'])
      .describe('`suspended`: without a process; directory, exports and functions are kept.'),
    used_by_agent: z.boolean().describe('A call of the agent runs in it: clients have to wait.'),
    cwd: z.string().optional().describe('Not known of one that was not used since the server started.'),
    pid: z.int().optional(),
  })
  .meta({ id: 'ShellSession' })
export type ShellSession = z.infer<typeof ShellSession>

export const ShellSessions = z
  .object({ items: z.array(ShellSession), next_page_id: z.null() })
  .meta({ id: 'ShellSessions' })

export const Process = z
  .object({
    pid: z.int().describe('As the host counts; what `DELETE` takes.'),
    ppid: z.int(),
    command_line: z.string(),
    state: z.enum(['running', 'sleeping', 'waiting', 'stopped']),
    started_at: z.iso.datetime(),
    session_id: z.string().optional().describe('The shell session it was started from.'),
    command_id: z.uuid().optional().describe('The command of a client that started it.'),
  })
  .meta({ id: 'Process' })
export type Process = z.infer<typeof Process>

export const Processes = z.object({ items: z.array(Process), next_page_id: z.null() }).meta({ id: 'Processes' })

export const EndProcesses = z.strictObject({
  pattern: z.string().min(1).max(1000).describe('A part of the command line, letter for letter.'),
})

export const EndedProcesses = z
  .object({ ended: z.array(Process).describe('Those that were meant, and all below them. None of them lives.') })
  .meta({ id: 'EndedProcesses' })
export type EndedProcesses = z.infer<typeof EndedProcesses>
