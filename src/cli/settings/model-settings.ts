/** Combines the settings of the model: options take precedence over the environment, and that over the settings file. */
import { z } from 'zod'
import { DROPPED_CREDENTIALS, LlmConfig, LLM_PROVIDERS } from '../../contract/values/llm-config.ts'
import { checkVariable, createReader, modelVariables, sourceOf } from '../../config/environment.ts'
import { readLlmKey, readLlmUrl } from '../../config/keys.ts'
import { readKeyCommand, withOwnVendorKey } from '../../config/model-keys.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import { VendorKeys } from '../../llm/endpoints/vendor-keys.ts'
import { vendorAt } from '../../llm/endpoints/vendors.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import type { GivenNames } from './setting-names.ts'
import { SettingNames } from './setting-names.ts'
import type { SettingsFile } from './settings-file.ts'

type Field = keyof LlmConfig
type Values = LlmConfig
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the schema
const FIELDS = Object.keys(LlmConfig.shape) as Field[]

/** What belongs to an endpoint, and is not sent to another one. */
const OF_ENDPOINT: readonly Field[] = [
  ...DROPPED_CREDENTIALS,
  'provider',
  'custom_llm_provider',
  'api_version',
  'extra_body',
]

/** What is true of one model only: it does not hold for the model that another source names. */
const OF_MODEL: ReadonlySet<Field> = new Set<Field>([
  'context_window',
  'disable_vision',
  'fallback_models',
  'input_cost_per_token',
  'output_cost_per_token',
  'cache_read_cost_per_token',
  'cache_write_cost_per_token',
])

/** Values, and what a person calls their fields. */
export type ModelSource = {
  readonly values: Values
  readonly nameOf: (field: Field) => string
  /** The program that prints the key, and its arguments, instead of one. */
  readonly keyCommand?: readonly string[] | undefined
}

export type ModelSettings = {
  readonly llm: LlmConfig
  /** Prints the key for the endpoint of `llm`, which has none then. */
  readonly keyCommand: readonly string[] | undefined
  readonly names: GivenNames
  /** What is missing, as a sentence that says what to do; undefined if the model can be asked. */
  readonly missing: { readonly field: 'model' | 'endpoint' | 'api_key'; readonly message: string } | undefined
}

type GivenModel = Pick<RunInvocation, 'model' | 'apiKey' | 'baseUrl'> &
  Partial<Pick<RunInvocation, 'effort' | 'fallbackModels'>>

/** The options that have other names than their fields. */
const OPTION_OF: Partial<Record<Field, string>> = { reasoning_effort: 'effort', fallback_models: 'fallback-model' }

/** Throws a `UsageError`. */
export const fromOptions = ({ model, apiKey, baseUrl, effort, fallbackModels = [] }: GivenModel): ModelSource => ({
  values: withoutUndefined({
    model,
    api_key: apiKey,
    base_url: baseUrl,
    reasoning_effort: effort === undefined ? undefined : effortOf(effort),
    fallback_models: fallbackModels.length > 0 ? [...fallbackModels] : undefined,
  }),
  nameOf: (field) => `--${OPTION_OF[field] ?? field.replace('_', '-')}`,
})

function effortOf(text: string): LlmConfig['reasoning_effort'] {
  const { data, error } = LlmConfig.shape.reasoning_effort.safeParse(text)
  if (error) throw new UsageError(`--effort is not valid: ${error.issues[0]?.message ?? 'unknown'}.`)
  return data
}

export const fromFile = ({ path, settings }: SettingsFile): ModelSource => ({
  values: settings,
  nameOf: (field) => `${field} of ${path}`,
  keyCommand: settings.api_key_command,
})

export const fromPerson = (values: Values): ModelSource => ({ values, nameOf: () => 'what you have entered' })

const variableOf = (field: Field): string => `LLM_${field.toUpperCase()}`

/** Reads the environment of the process, without a `.env`: call it after `leaveProject`. Throws a `UsageError`. */
export function fromEnvironment(environment = modelVariables()): ModelSource {
  const read = createReader({})
  const knownValues = {
    model: read('LLM_MODEL'),
    api_key: readLlmKey(read('LLM_API_KEY')),
    base_url: readLlmUrl(read),
    provider: checkVariable('LLM_PROVIDER', z.enum(LLM_PROVIDERS).optional(), read),
  }
  const others = FIELDS.filter((field) => !Object.hasOwn(knownValues, field))
  const values = withoutUndefined({
    ...Object.fromEntries(others.map((field) => [field, valueIn(field, environment[variableOf(field)])])),
    ...knownValues,
  })
  const isKeyFile = sourceOf('LLM_API_KEY')?.from === 'file'
  const nameOf = (field: Field) => `${variableOf(field)}${field === 'api_key' && isKeyFile ? '_FILE' : ''}`
  return { values, nameOf, keyCommand: readKeyCommand(read) }
}

/** A text, or JSON. The message does not repeat it: it may contain a key. */
function valueIn(field: Field, text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  const schema = LlmConfig.shape[field]
  const asText = schema.safeParse(text)
  if (asText.success) return asText.data
  const { success, data, error } = schema.safeParse(parseJson(text))
  if (success) return data
  throw new UsageError(`${variableOf(field)} is not valid: ${error.issues[0]?.message ?? 'unknown'}.`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

const NO_KEYS = new VendorKeys({})

/** `sources`: the first one that has a value sets it. `path`: the settings file. `keys`: those of vendors. */
export function combineModelSettings(
  sources: readonly ModelSource[],
  path: string,
  keys: VendorKeys = NO_KEYS,
): ModelSettings {
  const first = (field: Field) => sources.find(({ values }) => values[field] !== undefined)
  const model = first('model')?.values.model
  const isOfModel = ({ values }: ModelSource) => values.model === undefined || values.model === model
  const sourceFor = (field: Field) =>
    OF_MODEL.has(field) ? sources.find((each) => each.values[field] !== undefined && isOfModel(each)) : first(field)
  const set = FIELDS.flatMap((field) => {
    const source = sourceFor(field)
    return source ? [{ field, value: source.values[field], name: source.nameOf(field) }] : []
  })
  const givenValues: Values = Object.fromEntries(set.map(({ field, value }) => [field, value]))
  const isElsewhereFor = (field: Field) => {
    const source = sourceFor(field)
    return source !== undefined && isForAnother(source.values, givenValues.base_url)
  }
  // A key takes precedence over a command of a later source, and the other way round.
  const keySource = sources.find(({ values, keyCommand }) => values.api_key !== undefined || keyCommand !== undefined)
  const isElsewhere = keySource !== undefined && isForAnother(keySource.values, givenValues.base_url)
  const keyCommand = isElsewhere ? undefined : keySource?.keyCommand
  const droppedFields = OF_ENDPOINT.filter(
    (field) => isElsewhereFor(field) || (field === 'api_key' && keySource?.keyCommand),
  )
  const own: LlmConfig = withoutUndefined({
    ...givenValues,
    ...Object.fromEntries(droppedFields.map((field) => [field, undefined])),
  })
  const { llm, name } = keyCommand ? { llm: own, name: 'LLM_API_KEY_COMMAND' } : withOwnVendorKey(own, keys)
  const namedFields = set.map(({ field, name: each }) => [`llm_config.${field}`, each])
  const names = Object.fromEntries(name === undefined ? namedFields : [...namedFields, ['llm_config.api_key', name]])
  const otherKey = isElsewhere ? keySource.nameOf('api_key') : undefined
  const missing = keyCommand && llm.model !== undefined ? undefined : whatIsMissing(llm, path, otherKey)
  return { llm, keyCommand, names, missing }
}

/** A key that was given together with an endpoint is never sent to another one. */
function isForAnother({ base_url: own }: Values, base_url: string | undefined): boolean {
  return own !== undefined && (base_url === undefined || originOf(own) !== originOf(base_url))
}

const originOf = (url: string): string => URL.parse(url)?.origin ?? url

/** `otherKey`: what has set a key that is for another endpoint. */
function whatIsMissing(llm: LlmConfig, path: string, otherKey: string | undefined): ModelSettings['missing'] {
  if (llm.model === undefined)
    return { field: 'model', message: `no model is set: give --model, set LLM_MODEL, or write model into ${path}.` }
  const fault = faultOf(llm)
  if (fault !== undefined) return { field: 'endpoint', message: new SettingNames().in(fault) }
  // Endpoints that somebody names may need no key.
  const isNamed = llm.base_url !== undefined && otherKey === undefined
  if (llm.api_key !== undefined || isNamed || isLocal(llm)) return undefined
  const why =
    otherKey === undefined
      ? `no key is set for ${llm.model}`
      : `${otherKey} is for another endpoint than ${llm.base_url ?? 'that of the model'}`
  const variable = vendorAt(endpointOf(llm).baseUrl)?.keyVariables[0]
  const variables = [...(variable === undefined ? [] : [variable]), 'LLM_API_KEY'].join(' or ')
  return { field: 'api_key', message: `${why}: set ${variables}, give --api-key, or write api_key into ${path}.` }
}

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

const isLocal = (llm: LlmConfig): boolean => LOCAL_HOSTS.has(new URL(endpointOf(llm).baseUrl).hostname)

/** Returns why nobody knows where the model is. */
function faultOf(llm: LlmConfig): string | undefined {
  try {
    endpointOf(llm)
    return undefined
  } catch (error) {
    if (error instanceof LlmError) return error.message
    throw error
  }
}
