/** How the settings ask a person for a model that is not set, without knowing how the questions look. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { SettingsFile } from './settings-file.ts'

export type MissingModel = {
  /** What is set. */
  readonly llm: LlmConfig
  /** What has set its key, for a person. */
  readonly nameOfKey: string | undefined
  /** The file that answers can be kept in; its path is absolute. */
  readonly file: SettingsFile
}

export type ChosenModel = {
  /** The values always have an endpoint, so that the key is sent nowhere else. */
  readonly values: LlmConfig
  /** Whether the settings file has a key now. */
  readonly keepsKey: boolean
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

/** Undefined: the person has left. */
export type ChooseModel = (missing: MissingModel) => Promise<ChosenModel | undefined>
