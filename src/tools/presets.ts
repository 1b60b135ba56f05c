/** Sets of tools that a conversation can ask for by one name. Loads no tool. */
import type { ToolPreset } from '../contract/settings.ts'

/**
 * The tools of a conversation that names none. Without `Finish`, because an answer without calls already ends a run,
 * and two ways to end make a model say everything twice; without `Think`, because models that benefit from it now think
 * by themselves.
 */
export const DEFAULT_TOOLS = ['Bash', 'FileEditor', 'TaskTracker'] as const

/** `claude`: the names and parameters of Claude Code. `openhands`: those of OpenHands. The registry checks the names. */
export const PRESETS = {
  default: DEFAULT_TOOLS,
  minimal: ['Bash', 'Read', 'Write'],
  claude: [
    ...(['Bash', 'BashOutput', 'KillShell', 'Read', 'Write', 'Edit', 'MultiEdit'] as const),
    ...(['Glob', 'Grep', 'WebFetch', 'WebSearch', 'AskUserQuestion', 'Skill', 'SlashCommand', 'Task'] as const),
  ],
  openhands: ['Bash', 'FileEditor', 'TaskTracker', 'Finish', 'Think'],
} as const satisfies Readonly<Record<ToolPreset, readonly string[]>>
