/**
 * What skills and slash commands allow after their use: the `allowed_tools` of trusted files, until the run ends or the
 * user writes. A part of the state, and so folded from the log.
 */
import type { EventOf } from '../contract/events/event.ts'
import type { PermissionRules } from '../contract/values/permission.ts'
import type { ProjectEntry, ProjectSettings } from '../contract/project/project-settings.ts'
import { parseCommandCall } from './command-text.ts'

/** Finds an entry by its name; the last part of a name with `:` is enough if only one entry has it. */
export function findEntry(entries: readonly ProjectEntry[], name: string): ProjectEntry | undefined {
  const exact = entries.find((entry) => entry.name === name)
  if (exact) return exact
  const possible = entries.filter((entry) => entry.name.endsWith(`:${name}`))
  return possible.length === 1 ? possible[0] : undefined
}

type GrantedRules = PermissionRules | undefined

/** A message of the user ends what was granted, and may begin with a command. */
export function grantedByMessage(
  settings: ProjectSettings | undefined,
  { slash_command: command }: EventOf<'UserMessage'>,
): GrantedRules {
  if (!settings || !command) return undefined
  return withEntry(undefined, findEntry(settings.commands, command.name) ?? findEntry(settings.skills, command.name))
}

type Before = {
  readonly settings: { readonly project_settings?: ProjectSettings | undefined }
  readonly openCalls: readonly { readonly toolUseId: string; readonly name: string; readonly input: unknown }[]
  readonly granted: GrantedRules
}

/** Returns the rules after a successful call of a tool. */
export function grantedByResult(
  { settings: { project_settings: settings }, openCalls, granted }: Before,
  { tool_use_id: id, is_error }: EventOf<'ToolResult'>,
): GrantedRules {
  if (!settings || is_error) return granted
  const call = openCalls.find(({ toolUseId }) => toolUseId === id)
  if (call?.name !== 'Skill' && call?.name !== 'SlashCommand') return granted
  const input: { skill?: unknown; command?: unknown } = typeof call.input === 'object' ? { ...call.input } : {}
  if (call.name === 'Skill')
    return typeof input.skill === 'string' ? withEntry(granted, findEntry(settings.skills, input.skill)) : granted
  const name = typeof input.command === 'string' ? parseCommandCall(input.command)?.name : undefined
  if (name === undefined) return granted
  return withEntry(granted, findEntry(settings.commands, name) ?? findEntry(settings.skills, name))
}

function withEntry(grantedRules: GrantedRules, entry: ProjectEntry | undefined): GrantedRules {
  if (!entry?.allowed_tools) return grantedRules
  return { allow: [...new Set([...(grantedRules?.allow ?? []), ...entry.allowed_tools])], ask: [], deny: [] }
}
