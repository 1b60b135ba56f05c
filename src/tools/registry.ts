/** All tools: how each is created, and the names by which clients may request it. */
import { Problem } from '../contract/problem.ts'
import { createBashTool } from './bash.ts'
import type { AgentShells } from './bash.ts'
import { createFileEditor } from './file-editor.ts'
import { AgentFiles } from './files/agent-files.ts'
import type { AgentFilesDeps } from './files/agent-files.ts'
import { createEdit, createMultiEdit } from './files/edit.ts'
import { createRead } from './files/read.ts'
import { createWrite } from './files/write.ts'
import { createFinish } from './finish.ts'
import { createGlob } from './search/glob.ts'
import { createGrep } from './search/grep.ts'
import type { SearchDeps } from './search/search-place.ts'
import { createTaskTracker } from './task-tracker.ts'
import { createThink } from './think.ts'
import { createApplyPatch } from './patch/apply-patch.ts'
import type { Tool } from './tool.ts'

/** The dependencies of one conversation's tools. */
export type ToolDeps = {
  readonly shells: AgentShells
  /** Returns the output of the last successful call of a tool in `TOOLS_KEPT_IN_LOG`, undefined if there was none. */
  readonly lastOutput: (toolName: string) => unknown
  readonly search: SearchDeps
} & AgentFilesDeps

/** The same, with the dependencies that the tools of one conversation share. */
type SharedDeps = Omit<ToolDeps, keyof AgentFilesDeps> & { readonly files: AgentFiles }

/** A new tool is one file and one line here. */
const TOOLS = {
  Bash: ({ shells }) => createBashTool(shells),
  FileEditor: ({ files }) => createFileEditor(files),
  TaskTracker: ({ lastOutput }) => createTaskTracker(() => lastOutput('TaskTracker')),
  Finish: () => createFinish(),
  Think: () => createThink(),
  Read: ({ files }) => createRead(files),
  Write: ({ files }) => createWrite(files),
  Edit: ({ files }) => createEdit(files),
  MultiEdit: ({ files }) => createMultiEdit(files),
  apply_patch: ({ files }) => createApplyPatch(files),
  Glob: (deps) => createGlob(deps),
  Grep: (deps) => createGrep(deps),
} satisfies Record<string, (deps: SharedDeps) => Tool>

export type ToolName = keyof typeof TOOLS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[]

/**
 * The tools of a conversation that names none. Without `Finish`, because an answer without calls already ends a run,
 * and two ways to end make a model say everything twice; without `Think`, because models that benefit from it now think
 * by themselves.
 */
export const DEFAULT_TOOLS: readonly ToolName[] = ['Bash', 'FileEditor', 'TaskTracker']

/** Tools whose state is the output of their last successful call: it is stored only in the log. */
export const TOOLS_KEPT_IN_LOG: ReadonlySet<string> = new Set<ToolName>(['TaskTracker'])

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
}

/** Returns canonical names in the given order, without duplicates. Throws a `Problem` that names an unknown one. */
export function resolveToolNames(names: readonly string[]): ToolName[] {
  return [...new Set(names.map(resolveToolName))]
}

/** Returns the name of the tool on this server; an unknown name stays as it is. */
export function canonicalName(name: string): string {
  const found = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  return found ?? TOOL_NAMES.find((known) => known.toLowerCase() === name.toLowerCase()) ?? name
}

/** Skips names in a log that this version does not know. */
export function createTools(names: readonly string[], deps: ToolDeps): Tool[] {
  const shared = { ...deps, files: new AgentFiles(deps) }
  return names.filter(isToolName).map((name) => TOOLS[name](shared))
}

function resolveToolName(name: string, at: number): ToolName {
  if (isToolName(name)) return name
  const found = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  if (found) return found
  throw new Problem(
    'invalid_request',
    `tools.${at} is not a tool of this server; the tools are ${TOOL_NAMES.join(', ')}.`,
    {
      details: { tools: [...TOOL_NAMES] },
    },
  )
}

const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOLS, name)
