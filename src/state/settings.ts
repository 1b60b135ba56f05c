/** The settings of a conversation, as its log has them. */
import { z } from 'zod'
import type { EventOf } from '../contract/events/event.ts'
import { describeIssue, Problem } from '../contract/problem.ts'
import { fieldsOf } from '../contract/setting-fields.ts'
import { DroppedField, LlmConfig } from '../contract/values/llm-config.ts'

/** How a conversation was created and configured, without secret values: the `options_summary` of its `SystemInit`. */
export const Settings = z.object(fieldsOf('stored'))
export type Settings = z.infer<typeof Settings>

/** The stored settings: those of the project are in a field of the event. */
export const settingsIn = ({ options_summary, project_settings }: EventOf<'SystemInit'>): Record<string, unknown> =>
  project_settings ? { ...options_summary, project_settings } : options_summary

/** Applies a `ConfigUpdate` to settings; `llm_config` merges field by field, over everything that was not dropped. */
export function withChanges(settings: Settings, changes: Record<string, unknown>): Settings {
  const { llm_config, dropped, ...rest } = changes
  const names = new Set<string>(z.array(DroppedField).default([]).parse(dropped))
  const keptConfig = Object.fromEntries(Object.entries(settings.llm_config).filter(([name]) => !names.has(name)))
  const mergedConfig = llm_config ? { ...keptConfig, ...LlmConfig.parse(llm_config) } : keptConfig
  const output_schema = 'output_schema' in rest ? (rest['output_schema'] ?? undefined) : settings.output_schema
  return Settings.parse({ ...settings, ...rest, output_schema, llm_config: mergedConfig })
}

/**
 * Throws a `Problem` for settings that could not be read from the log again. What was accepted can be too long afterwards: the
 * values of secrets in it are replaced, or something is added to it. What is as it was `accepted` is not looked at.
 */
export function requireReadable(settings: Settings, accepted: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(settings))
    if (value !== accepted[name]) reportFault(name, () => FIELDS[name]?.parse(value))
}

/** The same for settings after a change. */
export function requireReadableChange(settings: Settings, changes: Record<string, unknown>): void {
  reportFault(undefined, () => withChanges(settings, changes))
}

const FIELDS: Readonly<Record<string, z.ZodType>> = Settings.shape

function reportFault(field: string | undefined, parse: () => unknown): void {
  try {
    parse()
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    const [issue] = error.issues.map((each) => describeIssue(each, field === undefined ? [] : [field]))
    throw new Problem(
      'invalid_request',
      `${issue?.path}: ${issue?.message}, with what the server adds to it; shorten it.`,
    )
  }
}
