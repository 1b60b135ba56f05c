/**
 * The settings of a conversation that are options of the command line. The reader of arguments, help, completion, the names
 * in errors and docs/cli.md follow this table, so that a setting becomes an option by one entry. What the values mean is in
 * `settings.ts`. It loads nothing: the arguments are read before any package.
 */
import type { NameIn } from './setting-fields.ts'

export type SettingOption = {
  /** The name without the dashes. */
  readonly name: string
  /** How the text becomes a value. `json`: JSON, or a file that contains it. `names`: one name, or several with commas. `texts`: a list, with an option for each. `flag`: true. `switch`: `true` or `false`. */
  readonly form: 'text' | 'number' | 'json' | 'names' | 'texts' | 'flag' | 'switch'
  /** What stands for the value in help. A flag has none. */
  readonly value?: string
  readonly about: string
}

export const SETTING_OPTIONS = {
  title: { name: 'name', form: 'text', value: 'TEXT', about: 'The title of the conversation.' },
  labels: {
    name: 'label',
    form: 'texts',
    value: 'TEXT',
    about: 'A label of the conversation; with sessions: only conversations with it. Can be repeated.',
  },
  tools: {
    name: 'tools',
    form: 'names',
    value: 'NAMES',
    about: "The tools of the agent: a preset, or names with commas; '' for none.",
  },
  max_seconds_per_run: { name: 'max-seconds', form: 'number', value: 'NUMBER', about: 'Stop a run after this time.' },
  max_budget_usd: {
    name: 'max-budget-usd',
    form: 'number',
    value: 'NUMBER',
    about: 'Stop when the conversation has cost this much.',
  },
  allow_unpriced: {
    name: 'allow-unpriced',
    form: 'flag',
    about: 'With a budget, allow models whose cost is not known.',
  },
  file_checkpointing: {
    name: 'file-checkpointing',
    form: 'switch',
    value: 'BOOLEAN',
    about: 'Whether the files are kept before turns that may change them. Default on this machine: if there is git.',
  },
  output_schema: {
    name: 'json-schema',
    form: 'json',
    value: 'JSON',
    about: 'The answer is JSON that fits this JSON Schema, which can also be a file.',
  },
  agents: {
    name: 'agents',
    form: 'json',
    value: 'JSON',
    about: 'Subagents by name, in the form of the API or of Claude Code; also a file.',
  },
} as const satisfies Partial<Record<NameIn<'create'>, SettingOption>>

export type OptionSetting = keyof typeof SETTING_OPTIONS
type Named = (typeof SETTING_OPTIONS)[OptionSetting]
export type SettingFlagName = Extract<Named, { form: 'flag' }>['name']
export type SettingListName = Extract<Named, { form: 'texts' }>['name']
export type SettingTextName = Exclude<Named['name'], SettingFlagName | SettingListName>

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const OPTION_SETTINGS = Object.keys(SETTING_OPTIONS) as readonly OptionSetting[]
