/** Which tools there are: how each is made, and by which names clients may ask for it. */
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
import { createTaskTracker } from './task-tracker.ts'
import { createThink } from './think.ts'
import { createApplyPatch } from './patch/apply-patch.ts'
import type { Tool } from './tool.ts'

/** What the tools of one conversation may work with. */
export type ToolDeps = {
  readonly shells: AgentShells
  /** Output of the last successful call of a tool in `TOOLS_KEPT_IN_LOG`, undefined when there was none. */
  readonly lastOutput: (toolName: string) => unknown
} & AgentFilesDeps

/** The same, with what the tools of one conversation share. */
type SharedDeps = Omit<ToolDeps, keyof AgentFilesDeps> & { readonly files: AgentFiles }

/** A new tool is a file of its own and a line here. */
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
} satisfies Record<string, (deps: SharedDeps) => Tool>

export type ToolName = keyof typeof TOOLS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[]

/**
 * What a conversation gets that names none. Without `Finish`, as an answer without calls ends a run already, and two ways
 * to end make a model say everything twice; without `Think`, as models that gain from it think by themselves by now.
 */
export const DEFAULT_TOOLS: readonly ToolName[] = ['Bash', 'FileEditor', 'TaskTracker']

/** Tools whose state is what their last successful call answered: the log keeps it, and nothing else does. */
export const TOOLS_KEPT_IN_LOG: ReadonlySet<string> = new Set<ToolName>(['TaskTracker'])

/** Other servers' names for the same tools, so that their clients need not change. */
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

/** Canonical names in the order given, each once. Throws a `Problem` that says which is unknown. */
export function resolveToolNames(names: readonly string[]): ToolName[] {
  return [...new Set(names.map(resolveToolName))]
}

/** The name of a tool here; a name that is not known stays as it is. */
export function canonicalName(name: string): string {
  const found = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  return found ?? TOOL_NAMES.find((known) => known.toLowerCase() === name.toLowerCase()) ?? name
}

/** Names that a log has and this version does not know are passed over. */
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
    `tools.${at} is no tool of this server; the tools are ${TOOL_NAMES.join(', ')}.`,
    {
      details: { tools: [...TOOL_NAMES] },
    },
  )
}

const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOLS, name)
