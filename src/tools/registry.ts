/** Which tools there are: how each is made, and by which names clients may ask for it. */
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import type { EditorFiles } from '../files/editor-files.ts'
import type { Shells } from '../shell/shell.ts'
import { createBashTool } from './bash.ts'
import { createFileEditor } from './file-editor.ts'
import type { FileEditorDeps } from './file-editor.ts'
import { createFinish } from './finish.ts'
import { createTaskTracker } from './task-tracker.ts'
import { createThink } from './think.ts'
import type { Tool } from './tool.ts'

/** What the tools of one conversation may work with. */
export type ToolDeps = {
  readonly shells: Pick<Shells, 'get'>
  readonly files: EditorFiles
  /** The conversation's own directory, among the server's files. */
  readonly stateDirectory: string
  /** Output of the last successful call of a tool in `TOOLS_KEPT_IN_LOG`, undefined when there was none. */
  readonly lastOutput: (toolName: string) => unknown
} & Pick<FileEditorDeps, 'sealer' | 'redact'>

/** A new tool is a file of its own and a line here. */
const TOOLS = {
  Bash: ({ shells }) => createBashTool(shells),
  FileEditor: ({ stateDirectory, ...deps }) =>
    createFileEditor({ ...deps, historyDirectory: join(stateDirectory, 'edits') }),
  TaskTracker: ({ lastOutput }) => createTaskTracker(() => lastOutput('TaskTracker')),
  Finish: () => createFinish(),
  Think: () => createThink(),
} satisfies Record<string, (deps: ToolDeps) => Tool>

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

/** Names that a log has and this version does not know are passed over. */
export function createTools(names: readonly string[], deps: ToolDeps): Tool[] {
  return names.filter(isToolName).map((name) => TOOLS[name](deps))
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
