/**
 * The options that are settings of the session, derived from the table of settings: a new setting is an option by its entry
 * there. Listed here is only what has another name or another form, and what is not an option.
 */
import { z } from 'zod'
import type { CreateConversation } from '../../contract/conversation.ts'
import type { NameIn } from '../../contract/setting-fields.ts'
import { namesIn } from '../../contract/setting-fields.ts'
import { SETTINGS } from '../../contract/settings.ts'
import type { CamelCase } from './camel-case.ts'
import { toCamelCase } from './camel-case.ts'

type Wire = z.input<typeof CreateConversation>

/** Settings that options have in another form. `request-bodies.ts` writes each of them. */
const IN_ANOTHER_FORM = [
  'workdir',
  'additional_directories',
  'llm_config',
  'tools',
  'client_tools',
  'output_schema',
  'permission_mode',
  'hooks',
  'tool_config',
  'mcp',
  'agents',
] as const satisfies readonly NameIn<'create'>[]
export type ConvertedSetting = (typeof IN_ANOTHER_FORM)[number]

/** Fields of the option `conversation`: objects in the form of the wire, and what other options say as well. */
const ON_THE_WIRE = [
  'profile',
  'external_id',
  'confirmation_mode',
  'permission_rules',
  'microagents',
  'visualize',
  'compaction',
  'limits',
  'network',
  'subagent_limits',
] as const satisfies readonly NameIn<'create'>[]

/** All others are called as on the wire, in camel case. */
const OTHER_NAMES = {
  max_iteration_per_run: 'maxSteps',
  max_seconds_per_run: 'timeoutS',
  max_tokens_per_run: 'maxTokens',
  file_checkpointing: 'enableFileCheckpointing',
} as const satisfies { readonly [K in NameIn<'create'>]?: string }

export type PlainSetting = Exclude<NameIn<'create'>, ConvertedSetting | (typeof ON_THE_WIRE)[number]>
type OptionName<K extends string> = K extends keyof typeof OTHER_NAMES ? (typeof OTHER_NAMES)[K] : CamelCase<K>
type AsOption<Value> = Value extends readonly (infer Item)[] ? readonly Item[] : Value

/** The options with the values of the wire. */
export type SettingOptions = { readonly [K in PlainSetting as OptionName<K>]?: AsOption<Wire[K]> | undefined }

const notPlain: ReadonlySet<string> = new Set([...IN_ANOTHER_FORM, ...ON_THE_WIRE])

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all names of a create but those of the two lists, as the type says
export const PLAIN_SETTINGS = namesIn('create').filter((name) => !notPlain.has(name)) as readonly PlainSetting[]

const otherNames = new Map<string, string>(Object.entries(OTHER_NAMES))

export const optionNameOf = (setting: PlainSetting) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same rule as in the type
  (otherNames.get(setting) ?? toCamelCase(setting)) as keyof SettingOptions

/** True if an update accepts the setting: a session that is continued can get another value. */
export const isChangeable = (setting: NameIn<'create'>): boolean => 'update' in SETTINGS[setting]

/** The JSON type of the values of a setting. */
export type ValueType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object'

export function valueTypeOf(setting: PlainSetting): ValueType {
  const schema = withoutDefault(SETTINGS[setting].create)
  if (schema instanceof z.ZodString) return 'string'
  if (schema instanceof z.ZodNumber) return schema.format?.includes('int') ? 'integer' : 'number'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  return schema instanceof z.ZodArray ? 'array' : 'object'
}

function withoutDefault(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? withoutDefault(schema.unwrap()) : schema
}

/** The fields of a request, by the names of the wire. */
export const plainFields = (options: SettingOptions): Partial<Pick<Wire, PlainSetting>> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the values of the options, which have the types of the wire
  Object.fromEntries(PLAIN_SETTINGS.map((setting) => [setting, options[optionNameOf(setting)]]))
