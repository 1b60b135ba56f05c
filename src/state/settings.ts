/** The settings of a conversation, as its log has them. */
import { z } from 'zod'
import type { EventOf } from '../contract/events/event.ts'
import { fieldsOf } from '../contract/setting-fields.ts'

/** How a conversation was created and configured, without secret values: the `options_summary` of its `SystemInit`. */
export const Settings = z.object(fieldsOf('stored'))
export type Settings = z.infer<typeof Settings>

/** The stored settings: those of the project are in a field of the event. */
export const settingsIn = ({ options_summary, project_settings }: EventOf<'SystemInit'>): Record<string, unknown> =>
  project_settings ? { ...options_summary, project_settings } : options_summary
