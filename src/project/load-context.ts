/** What the loaders of project settings share: a source with its reader, and the notes about what was ignored. */
import type { ProjectSource } from '../contract/project/project-settings.ts'
import type { IgnoredSettings } from './ignored-settings.ts'
import type { SettingsReader } from './settings-reader.ts'

export type SourceContext = {
  readonly source: ProjectSource
  readonly reader: SettingsReader
  /** Its files may give more rights. */
  readonly isTrusted: boolean
  readonly ignored: IgnoredSettings
  /** A rule with the name that its tool has on this server. */
  readonly canonicalRule: (text: string) => string
}
