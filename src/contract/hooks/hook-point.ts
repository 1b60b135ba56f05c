/** The points of a conversation at which hooks are called. */
import { z } from 'zod'

export const HOOK_POINTS = [
  'SessionStart',
  'SessionEnd',
  'UserPromptSubmit',
  'PreModelCall',
  'PostModelCall',
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PostToolBatch',
  'PermissionRequest',
  'PermissionDenied',
  'Stop',
  'StopFailure',
  'SubagentStart',
  'SubagentStop',
  'PreCompact',
  'PostCompact',
  'FileChanged',
  'TaskCompleted',
  'Notification',
] as const
export const HookPoint = z.enum(HOOK_POINTS).meta({ id: 'HookPoint' })
export type HookPoint = z.infer<typeof HookPoint>
