/** The `Bash` tool: a model's commands in a shell session that persists between them. */
import { z } from 'zod'
import { Problem } from '../contract/problem.ts'
import type { ShellResult, Shells } from '../shell/shell.ts'
import type { BackgroundShells } from './background/background-shells.ts'
import type { Tool, ToolContext } from './tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'

/** The agent's own session. */
const AGENT_SESSION_ID = 'agent'
const DEFAULT_TIMEOUT_S = 120
const MAX_TIMEOUT_S = 24 * 60 * 60

const BashInput = z.object({
  command: z
    .string()
    .describe('The command for bash; it may have several lines. May be empty together with `restart`.'),
  timeout: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_S)
    .default(DEFAULT_TIMEOUT_S)
    .describe(`Seconds after which the command is ended; ${DEFAULT_TIMEOUT_S} when absent.`),
  session_id: z
    .string()
    .default(AGENT_SESSION_ID)
    .describe('Another shell session, with a separate state; created on first use. Rarely needed.'),
  run_in_background: z
    .boolean()
    .default(false)
    .describe('Return at once and run the command in its own shell; read its output with BashOutput.'),
  description: z.string().optional().describe('What the command does, in a few words; for the user.'),
  restart: z
    .boolean()
    .default(false)
    .describe('First kill what runs in the session and start a new shell in the working directory.'),
})
type BashInput = z.infer<typeof BashInput>

const BashOutput = z.object({
  exit_code: z.int().nullable().describe('Null when the command was not started.'),
  stdout: z.string(),
  stderr: z.string(),
  cwd: z.string().describe('The current directory of the shell.'),
  timed_out: z.boolean(),
  background_pid: z.int().optional(),
  background_id: z.string().optional().describe('Of a command that runs in the background.'),
  note: z.string().optional(),
})
type BashOutput = z.infer<typeof BashOutput>

const DESCRIPTION = `Runs a command in a persistent bash session and returns its output and exit code.

- The working directory, variables, functions, aliases and shell options stay for the next command. \`exit\`, \`exec\` and a failing \`set -e\` end the shell: use a subshell, as in \`(set -e; …)\`, to keep it.
- Nobody is at the keyboard: standard input is empty and there is no terminal. Pass flags such as \`-y\`, and avoid editors and pagers.
- Start servers and other long work with a trailing \`&\`: the call returns at once with the process id, and output continues in a file that the result names. \`kill\` it when it is no longer needed.
- Long output is shortened in the middle; the result names the file that has all of it.
- After \`timeout\` seconds the command is ended; the session stays as it is.`

export type AgentShells = Pick<Shells, 'get' | 'standOf'>

/** The shells of the one conversation that the tool is for. */
export type BashToolDeps = { readonly shells: AgentShells; readonly background: BackgroundShells }

/** Bash takes any other blank for a part of a name, which may be that of a function. */
const EMPTY_LINES = /^[ \t\n]*$/

export function createBashTool(deps: BashToolDeps): Tool<BashInput> {
  return {
    name: 'Bash',
    description: DESCRIPTION,
    input: BashInput,
    output: BashOutput,
    access: ({ command, session_id, restart }) =>
      EMPTY_LINES.test(command)
        ? { kind: 'none' }
        : { kind: 'command', command, ...deps.shells.standOf(session_id, restart) },
    run: (input, context) => runCommand(deps, input, context),
    withTimeout: (input, seconds) => ({ ...input, timeout: Math.min(input.timeout, seconds) }),
    cutOutput: cutBashOutput,
    render: renderBashOutput,
  }
}

async function runCommand(
  { shells, background }: BashToolDeps,
  input: BashInput,
  context: ToolContext,
): Promise<ToolOutcome> {
  try {
    if (input.run_in_background) return await startInBackground({ shells, background }, input)
    const shell = shells.get(input.session_id)
    if (input.restart) await shell.restart()
    const cwdBefore = shell.cwd
    const { timeout } = input
    const result = await shell.run(input.command, { timeout, signal: context.signal, onOutput: context.onOutput })
    return toOutcome(result, input, cwdBefore)
  } catch (error) {
    return toFailure(error)
  }
}

/**
 * A non-zero exit code is not an error: it is a result of the command (`grep` found nothing, a test failed), and the
 * model reads it in the output. An error means that the command did not finish by itself.
 */
function toOutcome(result: ShellResult, input: BashInput, cwdBefore: string): ToolOutcome {
  const error = errorOf(result, input.timeout)
  const movedNote = result.cwd === cwdBefore ? undefined : `The shell is now in ${result.cwd}.`
  const note = [result.note, movedNote].filter((sentence) => sentence !== undefined).join(' ')
  const output: BashOutput = {
    exit_code: result.exitCode,
    stdout: result.stdout,
    stderr: result.stderr,
    cwd: result.cwd,
    timed_out: result.timedOut,
    ...(result.backgroundPid !== undefined && { background_pid: result.backgroundPid }),
    ...(note && { note }),
  }
  return {
    output,
    ...(error && { error }),
    ...(result.truncated && { truncated: true }),
    ...(result.fullOutputPath !== undefined && { fullOutputPath: result.fullOutputPath }),
  }
}

function errorOf(result: ShellResult, timeout: number): ToolOutcome['error'] {
  if (result.exceeded) return { type: 'resource_limit', message: result.exceeded.message }
  if (result.timedOut) return { type: 'timeout', message: `The command was ended after ${timeout} s.` }
  if (result.interrupted) return { type: 'interrupted', message: 'The command was interrupted.' }
  return undefined
}

async function startInBackground({ shells, background }: BashToolDeps, input: BashInput): Promise<ToolOutcome> {
  if (input.restart) await shells.get(input.session_id).restart()
  const { id, cwd, files } = await background.start(input.command, input.session_id)
  const note = `It runs in the background with the id ${id}. Its output goes to ${files.stdout} and ${files.stderr}.`
  return {
    output: {
      exit_code: null,
      stdout: '',
      stderr: '',
      cwd,
      timed_out: false,
      background_id: id,
      note,
    } satisfies BashOutput,
  }
}

/** The session id is invalid, or no shell is available. */
function toFailure(error: unknown): ToolOutcome {
  const message = error instanceof Error ? error.message : String(error)
  return failure(error instanceof Problem ? 'invalid_input' : 'failed', message)
}

/** Each stream by itself. */
async function cutBashOutput(output: unknown, cutText: (text: string) => Promise<string>): Promise<unknown> {
  const parseResult = BashOutput.safeParse(output)
  if (!parseResult.success) return output
  const [stdout, stderr] = await Promise.all([cutText(parseResult.data.stdout), cutText(parseResult.data.stderr)])
  return { ...parseResult.data, stdout, stderr }
}

/** The output as the model reads it. */
const renderBashOutput = (output: unknown): string =>
  typeof output === 'string' ? output : renderOutput(BashOutput.parse(output))

function renderOutput(output: BashOutput): string {
  const lines = [
    stripLastNewline(output.stdout),
    output.stderr && `[stderr]\n${stripLastNewline(output.stderr)}`,
    output.timed_out && '[timed out]',
    output.exit_code !== 0 && output.exit_code !== null && `[exit code ${output.exit_code}]`,
    output.background_pid !== undefined && `[background pid ${output.background_pid}]`,
    output.note && `[${output.note}]`,
  ].filter(Boolean)
  return lines.length > 0 ? lines.join('\n') : '[no output]'
}

function stripLastNewline(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text
}
