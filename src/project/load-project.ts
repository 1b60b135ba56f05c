/**
 * Loads the settings of a project when a conversation is created. Settings files come first: their rules, and those of
 * the request, also hold for the files that are read next.
 */
import type { Hooks } from '../contract/hooks/hooks.ts'
import type { PermissionMode, PermissionRules } from '../contract/values/permission.ts'
import { Problem } from '../contract/problem.ts'
import type { ProjectEntry, ProjectSettings, ProjectSource } from '../contract/project/project-settings.ts'
import { PermissionGate } from '../policy/permissions.ts'
import { ruleSetOf } from '../policy/rules/rule-set.ts'
import { AGENTS, COMMANDS, loadEntries, SKILLS } from './entries.ts'
import { IgnoredSettings, NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'
import type { McpServerInput } from '../contract/mcp/mcp-server.ts'
import { readMcpServers } from './mcp-file.ts'
import type { ServerChoice } from './mcp-file.ts'
import type { MemoryText } from './memory.ts'
import { Memory } from './memory.ts'
import { MAX_PROJECT_RULES } from './project-limits.ts'
import type { FileSettings } from './settings-file.ts'
import { readSettingsFile } from './settings-file.ts'
import { ReadBudget, SettingsReader } from './settings-reader.ts'

export type LoadOptions = {
  readonly sources: readonly ProjectSource[]
  /** `trust_project` of the request. */
  readonly isTrusted: boolean
  /** Absolute, without links. */
  readonly workdir: string
  /** The directory of the operator, without links; undefined if it is not configured. */
  readonly userDirectory: string | undefined
  /** Files of the server. */
  readonly forbidden: readonly string[]
  /** What `~` stands for in rules. */
  readonly homes: readonly string[]
  /** The rules and the mode of the request. */
  readonly rules: PermissionRules | undefined
  readonly mode: PermissionMode | undefined
  readonly canonicalRule: (text: string) => string
}

/** The hooks of one settings file. */
export type FileHooks = { readonly path: string; readonly hooks: Hooks }

export type LoadedProject = {
  readonly settings: ProjectSettings
  /** The mode of the conversation, if the files decide it. */
  readonly mode: PermissionMode | undefined
  /** The texts for the system prompt. */
  readonly memory: readonly MemoryText[]
  /** The hooks of trusted files, with their secrets. */
  readonly hooks: readonly FileHooks[]
  /** The servers of a trusted project, with their credentials. */
  readonly mcpServers: Readonly<Record<string, McpServerInput>>
}

/** Throws a `Problem` for a settings file that cannot be read. */
export async function loadProject(options: LoadOptions): Promise<LoadedProject> {
  const ignoredSettings = new IgnoredSettings()
  const strict: PermissionRules[] = options.rules ? [options.rules] : []
  const contexts = contextsOf(options, ignoredSettings, createRefusal(options, strict))
  const files: LoadedFile[] = []
  for (const context of contexts) {
    const settings = await readSettingsFile(context, PLACES[context.source].settings)
    if (!settings) continue
    files.push({ ...settings, context })
    strict.push(settings.rules)
  }
  const rules = joinRules(files.map((file) => file.rules))
  refuseTooMany(rules)
  const memory = new Memory()
  const { mcpServers, ...content } = await loadContent(contexts, memory, choiceOf(files))
  const mode = modeOf(options, files, ignoredSettings)
  const settings = {
    sources: [...new Set(options.sources)],
    trusted: options.isTrusted,
    memory: memory.texts.map(({ file }) => file),
    ...content,
    settings_files: files.map(({ path, context }) => ({ source: context.source, path })),
    permission_rules: rules,
    ignored: ignoredSettings.list(),
  }
  const hooks = files.flatMap(({ path, hooks: givenHooks }) => (givenHooks ? [{ path, hooks: givenHooks }] : []))
  return { settings, mode, memory: memory.texts, hooks, mcpServers }
}

type LoadedFile = FileSettings & { readonly context: SourceContext }

type Places = {
  readonly settings: string
  readonly memory: readonly string[]
  /** The directory of skills, commands and agents. */
  readonly directory: string | undefined
}

const PLACES: Readonly<Record<ProjectSource, Places>> = {
  user: { settings: 'settings.json', memory: ['CLAUDE.md'], directory: '' },
  project: {
    settings: '.claude/settings.json',
    memory: ['CLAUDE.md', '.claude/CLAUDE.md', 'AGENTS.md'],
    directory: '.claude',
  },
  local: { settings: '.claude/settings.local.json', memory: ['CLAUDE.local.md'], directory: undefined },
}

/** The order of the sources: the first of two entries keeps its name. */
const ORDER: readonly ProjectSource[] = ['user', 'project', 'local']

function contextsOf(
  options: LoadOptions,
  ignoredSettings: IgnoredSettings,
  refusal: (path: string) => string | undefined,
): SourceContext[] {
  const { sources, workdir, userDirectory, forbidden, isTrusted, canonicalRule } = options
  const budget = new ReadBudget()
  if (sources.includes('user') && userDirectory === undefined)
    ignoredSettings.add('the source user', '', 'The operator has not set OPENHANDS_USER_SETTINGS_DIR.')
  return ORDER.filter((source) => sources.includes(source)).flatMap((source): SourceContext[] => {
    const directory = source === 'user' ? userDirectory : workdir
    if (directory === undefined) return []
    const reader = new SettingsReader({ directory, forbidden, refusalOf: refusal, budget })
    return [{ source, reader, isTrusted: source === 'user' || isTrusted, ignored: ignoredSettings, canonicalRule }]
  })
}

async function loadContent(
  contexts: readonly SourceContext[],
  memory: Memory,
  choice: ServerChoice,
): Promise<
  Pick<ProjectSettings, 'skills' | 'commands' | 'agents' | 'mcp_servers'> & Pick<LoadedProject, 'mcpServers'>
> {
  const kinds = [SKILLS, COMMANDS, AGENTS].map((kind) => ({ kind, known: new Map<string, ProjectEntry>() }))
  let foundServers: Awaited<ReturnType<typeof readMcpServers>> = { names: [], servers: {} }
  for (const context of contexts) {
    const { memory: texts, directory } = PLACES[context.source]
    for (const path of texts) await memory.load(context, path)
    if (directory === undefined) continue
    for (const { kind, known } of kinds) await loadEntries(kind, { ...context, directory }, known)
    if (context.source === 'project') foundServers = await readMcpServers(context, '.mcp.json', choice)
  }
  const [skills = [], commands = [], agents = []] = kinds.map(({ known }) => [...known.values()])
  return { skills, commands, agents, mcp_servers: [...foundServers.names], mcpServers: foundServers.servers }
}

/** A file that is not trusted can leave servers out. */
function choiceOf(files: readonly LoadedFile[]): ServerChoice {
  const isAll = files.some(({ servers, context }) => context.isTrusted && servers.all === true)
  const lists = files.flatMap(({ servers }) => servers.enabled ?? [])
  const isListed = files.some(({ servers }) => servers.enabled !== undefined)
  return {
    enabled: isListed && !isAll ? lists : undefined,
    disabled: files.flatMap(({ servers }) => servers.disabled ?? []),
  }
}

function refuseTooMany(rules: PermissionRules): void {
  if (Object.values(rules).every((texts) => texts.length <= MAX_PROJECT_RULES)) return
  throw new Problem(
    'invalid_request',
    `setting_sources: the settings files together have more than ${MAX_PROJECT_RULES} rules of one kind. Remove some.`,
  )
}

/** A rule about reading holds for the files of the project, too: their text is for the model. `strict` may grow. */
function createRefusal({ workdir, homes }: LoadOptions, strict: readonly PermissionRules[]) {
  const gate = new PermissionGate({ workdir: () => workdir, homes, accessOf: () => ({ kind: 'none' }) })
  let knownRules = { count: -1, rules: ruleSetOf(undefined) }
  return (path: string): string | undefined => {
    if (knownRules.count !== strict.length) knownRules = { count: strict.length, rules: ruleSetOf(joinRules(strict)) }
    const rules = { mode: 'bypass', confirmation: false, rules: { ...knownRules.rules, allow: [] } } as const
    const verdict = gate.verdictOn('Read', { kind: 'read', paths: [path] }, rules, false)
    return verdict.behavior === 'allow' ? undefined : `A rule keeps it from being read: ${verdict.reason}`
  }
}

function joinRules(all: readonly PermissionRules[]): PermissionRules {
  const join = (name: keyof PermissionRules) => [...new Set(all.flatMap((rules) => rules[name]))]
  return { allow: join('allow'), ask: join('ask'), deny: join('deny') }
}

/** The mode of the request counts; without one, the last file that may decide it. */
function modeOf(
  { mode: requestedMode }: LoadOptions,
  files: readonly LoadedFile[],
  ignoredSettings: IgnoredSettings,
): PermissionMode | undefined {
  let mode: PermissionMode | undefined
  for (const { mode: wantedMode, path, context } of files) {
    if (wantedMode === undefined) continue
    const what = `permissions.defaultMode (${wantedMode})`
    if (requestedMode !== undefined) ignoredSettings.add(what, path, 'The request has a permission_mode.')
    else if (context.isTrusted || RIGHTS[wantedMode] <= RIGHTS[mode ?? 'bypass']) mode = wantedMode
    else ignoredSettings.add(what, path, `It gives more rights than ${mode ?? 'bypass'}. ${NOT_TRUSTED}`)
  }
  return mode
}

/** How much a mode lets run. */
const RIGHTS: Readonly<Record<PermissionMode, number>> = {
  deny: 0,
  plan: 1,
  callback: 2,
  default: 2,
  accept_edits: 3,
  bypass: 4,
}
