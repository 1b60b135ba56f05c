/** All tools: how each is created, and the names by which clients may request it. */
import type { ToolPreset } from '../contract/settings.ts'
import type { ToolLimits } from '../contract/limits/tool-config.ts'
import { Problem } from '../contract/problem.ts'
import type { Shells } from '../shell/shell.ts'
import { BackgroundShells } from './background/background-shells.ts'
import { createBashOutput, createKillShell } from './background/bash-output.ts'
import { createAskUserQuestion } from './ask-user-question.ts'
import { createBashTool } from './bash.ts'
import type { AgentShells } from './bash.ts'
import { createFileEditor } from './files/file-editor.ts'
import { AgentFiles } from './files/agent-files.ts'
import type { AgentFilesDeps } from './files/agent-files.ts'
import { createEdit, createMultiEdit } from './files/edit.ts'
import { createRead } from './files/read.ts'
import { createWrite } from './files/write.ts'
import { createFinish } from './finish.ts'
import { createGlob } from './search/glob.ts'
import { createGrep } from './search/grep.ts'
import type { SearchAccess } from './search/search-place.ts'
import { limitTool } from './limited-tool.ts'
import { createTaskTracker } from './task-tracker.ts'
import { createTask } from './task/task.ts'
import type { TaskAccess } from './task/task-access.ts'
import { createThink } from './think.ts'
import type { ProjectAccess } from './project/project-access.ts'
import { createSkill } from './project/skill.ts'
import { createSlashCommand } from './project/slash-command.ts'
import { createApplyPatch } from './patch/apply-patch.ts'
import type { PdfReader } from './pdf/pdf-reader.ts'
import { PRESETS } from './presets.ts'
import type { Tool } from './tool.ts'
import type { SearchEngine } from './web/search-engine.ts'
import type { WebAccess } from './web/web-access.ts'
import { createWebFetch } from './web/web-fetch.ts'
import { createWebSearch } from './web/web-search.ts'

/** The dependencies of one conversation's tools. */
export type ToolDeps = {
  readonly shells: AgentShells & Pick<Shells, 'fork' | 'endFork'>
  /** Returns the output of the last successful call of a tool in `TOOLS_KEPT_IN_LOG`, undefined if there was none. */
  readonly lastOutput: (toolName: string) => unknown
  /** Returns what the conversation limits of a tool; asked for at each call. */
  readonly limitsOf: (toolName: string) => ToolLimits | undefined
  readonly search: SearchAccess
  readonly project: ProjectAccess
  readonly web: WebAccess
  readonly subagents: TaskAccess
  /** Shared by all conversations. */
  readonly pdfs: PdfReader
  /** Undefined where there is none: then `WebSearch` cannot be offered. */
  readonly searchEngine: SearchEngine | undefined
} & AgentFilesDeps

/** The same, with what the tools of one conversation share. */
type SharedDeps = Omit<ToolDeps, keyof AgentFilesDeps> &
  Pick<ToolDeps, 'redact'> & { readonly files: AgentFiles; readonly background: BackgroundShells }

/** A new tool is one file and one line here. */
const TOOLS = {
  Bash: (deps) => createBashTool(deps),
  FileEditor: ({ files }) => createFileEditor(files),
  TaskTracker: ({ lastOutput }) => createTaskTracker(() => lastOutput('TaskTracker')),
  Finish: () => createFinish(),
  Think: () => createThink(),
  Read: ({ files, pdfs }) => createRead(files, pdfs),
  Write: ({ files }) => createWrite(files),
  Edit: ({ files }) => createEdit(files),
  MultiEdit: ({ files }) => createMultiEdit(files),
  apply_patch: ({ files }) => createApplyPatch(files),
  Glob: (deps) => createGlob(deps),
  Grep: (deps) => createGrep(deps),
  WebFetch: (deps) => createWebFetch(deps),
  WebSearch: ({ searchEngine: engine, web }) => engine && createWebSearch({ engine, web }),
  BashOutput: ({ background }) => createBashOutput(background),
  KillShell: ({ background }) => createKillShell(background),
  AskUserQuestion: () => createAskUserQuestion(),
  Skill: ({ project }) => createSkill(project),
  SlashCommand: ({ project }) => createSlashCommand(project),
  Task: ({ subagents }) => createTask(subagents),
} satisfies Record<string, (deps: SharedDeps) => Tool | undefined>

export type ToolName = keyof typeof TOOLS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[]

/** Names of the same tools in other servers, so that their clients need not change. */
const ALIASES: Readonly<Record<string, ToolName>> = {
  execute_bash: 'Bash',
  BashTool: 'Bash',
  file_editor: 'FileEditor',
  str_replace_editor: 'FileEditor',
  FileEditorTool: 'FileEditor',
  task_tracker: 'TaskTracker',
  TaskTrackerTool: 'TaskTracker',
  finish: 'Finish',
  FinishTool: 'Finish',
  think: 'Think',
  ThinkTool: 'Think',
  // Later versions of Claude Code.
  Agent: 'Task',
}

/**
 * Canonical names in the order given, each once. Throws a `Problem` that names the one that is unknown, or that this server
 * cannot offer; a preset leaves such tools out.
 */
export function resolveToolNames(
  requestedTools: readonly string[] | ToolPreset,
  missing: ReadonlySet<ToolName> = new Set(),
): ToolName[] {
  if (typeof requestedTools === 'string') return toolsOfPreset(requestedTools).filter((name) => !missing.has(name))
  const names = requestedTools.map((name, at) => resolveToolName(name, at))
  const absent = names.findIndex((name) => missing.has(name))
  if (absent < 0) return [...new Set(names)]
  throw new Problem(
    'invalid_request',
    `tools.${absent}: this server does not offer ${requestedTools[absent]}, as it is not configured. Set TAVILY_API_KEY for the server.`,
  )
}

const toolsOfPreset = (preset: ToolPreset): readonly ToolName[] => PRESETS[preset]

/** Returns the name of the tool on this server; an unknown name stays as it is. */
export function canonicalName(name: string): string {
  const foundName = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  return foundName ?? TOOL_NAMES.find((toolName) => toolName.toLowerCase() === name.toLowerCase()) ?? name
}

/** Skips names in a log that this version does not know. */
export function createTools(names: readonly string[], deps: ToolDeps): Tool[] {
  const sharedDeps = { ...deps, files: new AgentFiles(deps), background: new BackgroundShells(deps) }
  const tools: readonly Tool[] = names.filter(isToolName).flatMap((name) => TOOLS[name](sharedDeps) ?? [])
  return tools.map((tool) => (tool.callsSubagent ? tool : limitTool(tool, deps)))
}

function resolveToolName(name: string, at: number): ToolName {
  if (isToolName(name)) return name
  const foundName = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  if (foundName) return foundName
  throw new Problem(
    'invalid_request',
    `tools.${at} is not a tool of this server; the tools are ${TOOL_NAMES.join(', ')}.`,
    {
      details: { tools: [...TOOL_NAMES] },
    },
  )
}

const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOLS, name)
