/**
 * Fills in a slash command: runs its commands for the shell and reads its files, each only if the agent could do so
 * without a question, and no `PreToolUse` hook objects. The text comes from the project: a use of it, also by a user, gives it no further rights. The
 * commands of a project that is not trusted run only if a rule allows them.
 */
import type { Input } from '../../hooks/claude-tools.ts'
import type { ProjectEntry } from '../../contract/project/project-settings.ts'
import type { GateRules } from '../../policy/rules/gate-rules.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import { ruleSetOf } from '../../policy/rules/rule-set.ts'
import type { CommandPart } from '../../state/command-text.ts'
import { commandParts } from '../../state/command-text.ts'
import type { SettingsReader } from '../../project/settings-reader.ts'
import type { ToolAccess } from '../../policy/tool-access.ts'
import type { ShellsOfAgent } from '../../workspace/exec/conversation-shells.ts'
import type { ToolHooks } from '../hooks/tool-hooks.ts'
import type { AgentView } from '../live/live-state.ts'

/** The agent that uses a slash command: it gives the text no more than the agent itself has. */
export type CommandUser = {
  readonly state: AgentView
  /** What the text does must be allowed by each of them. */
  readonly rules: () => readonly GateRules[]
  readonly shells: Pick<ShellsOfAgent, 'get' | 'standOf'>
  /** Hooks that must be asked about what the text does, if there are any now. */
  readonly hooks: () => Pick<ToolHooks, 'refusalOf'> | undefined
}

export type Expansion = CommandUser & {
  readonly entry: ProjectEntry
  readonly gate: PermissionGate
  /** Reads the files of the workdir. */
  readonly reader: SettingsReader
  /** The shell session of its commands. */
  readonly session: string
  readonly signal: AbortSignal
}

/** Parts of one slash command that are run, and that are read. Further ones stay as they are written. */
const MAX_COMMANDS = 10
const MAX_FILES = 10

/** The length of one command; a long one would take long to compare with rules. */
const MAX_COMMAND_CHARS = 2000

/** The time of one command, in seconds. */
const TIMEOUT_S = 30

/** What is shown of the output of one command, and of one file. */
const MAX_SHOWN_CHARS = 20_000

export async function expandCommand(body: string, args: string, expansion: Expansion): Promise<string> {
  const texts: string[] = []
  const files = new Map<string, string>()
  let commands = 0
  for (const part of commandParts(body, args)) {
    if (part.kind === 'shell') {
      commands += 1
      texts.push(
        commands > MAX_COMMANDS
          ? notRun(part, `A slash command runs at most ${MAX_COMMANDS}.`)
          : await run(part, expansion),
      )
      continue
    }
    texts.push(part.text)
    if (part.kind !== 'file' || files.has(part.path) || files.size >= MAX_FILES) continue
    const content = await readFile(part.path, expansion)
    if (content !== undefined) files.set(part.path, content)
  }
  return [texts.join(''), ...files.values()].join('\n\n').trim()
}

type ShellPart = Extract<CommandPart, { kind: 'shell' }>

async function run(part: ShellPart, expansion: Expansion): Promise<string> {
  const { entry, gate, state, shells, session, signal } = expansion
  const { command } = part
  if (command.length > MAX_COMMAND_CHARS) return notRun(part, `It has more than ${MAX_COMMAND_CHARS} characters.`)
  if (!state.current.settings.tools.includes('Bash')) return notRun(part, 'The agent has no shell.')
  const objection = await objectionOf(expansion, 'Bash', { command })
  if (objection !== undefined) return notRun(part, objection)
  const access = { kind: 'command', command, ...shells.standOf(session) } as const
  const refusal = await refusalOf(gate, 'Bash', access, rulesFor(entry, expansion))
  if (refusal !== undefined) return notRun(part, `It needs a permission: ${refusal}`)
  if (signal.aborted) return notRun(part, 'The call was interrupted.')
  const result = await shells
    .get(session)
    .run(command, { timeout: TIMEOUT_S, signal })
    .catch((error: unknown) => String(error instanceof Error ? error.message : error))
  if (typeof result === 'string') return notRun(part, `No shell could be started: ${result}`)
  const lines = [
    result.stdout.trimEnd(),
    result.stderr && `[stderr]\n${result.stderr.trimEnd()}`,
    result.timedOut && `[ended after ${TIMEOUT_S} s]`,
    result.exitCode !== 0 && result.exitCode !== null && `[exit code ${result.exitCode}]`,
  ].filter(Boolean)
  return shortenText(lines.join('\n'))
}

/** Returns what a hook says against it, before the gate decides, as for a call. */
async function objectionOf({ hooks, signal }: Expansion, tool: string, input: Input): Promise<string | undefined> {
  return await hooks()
    ?.refusalOf(tool, input, signal)
    .catch((error: unknown) => {
      if (signal.aborted) return 'The call was interrupted.'
      throw error
    })
}

/** Adds the rules of a trusted file to those of the conversation. Another file needs a rule for each command. */
function rulesFor({ source, allowed_tools: allowedTools }: ProjectEntry, { state, rules }: CommandUser): GateRules[] {
  const isStrangers = source === 'project' && !state.current.settings.project_settings?.trusted
  const { allow } = ruleSetOf({ allow: allowedTools ?? [], ask: [], deny: [] })
  return rules().map((each) => {
    if (isStrangers) return { ...each, isStrangers, mode: ['plan', 'deny'].includes(each.mode) ? each.mode : 'default' }
    return { ...each, rules: { ...each.rules, allow: [...each.rules.allow, ...allow] } }
  })
}

async function refusalOf(
  gate: PermissionGate,
  tool: string,
  access: ToolAccess,
  rules: readonly GateRules[],
): Promise<string | undefined> {
  for (const each of rules) {
    await gate.prepare(each)
    const verdict = gate.verdictOn(tool, access, each, false)
    if (verdict.behavior !== 'allow') return verdict.reason
  }
  return undefined
}

const notRun = ({ command }: ShellPart, reason: string) =>
  `[The command ${JSON.stringify(command.slice(0, 500))} of this text has not run. ${reason} If it is needed, run it with your own tools.]`

/** Undefined if it is not a file of the workdir: then it is only a text with an `@`. */
async function readFile(path: string, expansion: Expansion): Promise<string | undefined> {
  const { gate, rules, reader } = expansion
  if (path === '' || path.startsWith('/') || path.startsWith('~')) return undefined
  const foundText = await reader.read(path)
  if (foundText.kind === 'missing') return undefined
  if (foundText.kind === 'refused') return `[${path} was not read. ${foundText.reason}]`
  // Hooks for `Read` see it, and those for this tool.
  const objection = await objectionOf(expansion, 'FileEditor', { command: 'view', path })
  if (objection !== undefined) return `[${path} was not read. ${objection}]`
  const refusal = await refusalOf(gate, 'Read', { kind: 'read', paths: [path, foundText.realPath] }, rules())
  if (refusal !== undefined) return `[${path} was not read. It needs a permission: ${refusal}]`
  return `[The content of ${path}:]\n${shortenText(foundText.text)}`
}

function shortenText(text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text
  return `${text.slice(0, MAX_SHOWN_CHARS).toWellFormed()}\n[${text.length - MAX_SHOWN_CHARS} more characters are not shown.]`
}
