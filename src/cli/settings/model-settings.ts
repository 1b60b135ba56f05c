/** Combines the settings of the model: options take precedence over the environment, and that over the settings file. */
import type { LlmConfig } from '../../contract/llm-config.ts'
import { createReader, sourceOf } from '../../config/environment.ts'
import { readLlmKey, readLlmUrl } from '../../config/keys.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { LlmError } from '../../llm/llm.ts'
import { endpointOf } from '../../llm/endpoint.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import type { GivenNames } from './setting-names.ts'
import type { SettingsFile } from './settings-file.ts'

const FIELDS = ['model', 'base_url', 'api_key', 'temperature', 'reasoning_effort'] as const
type Field = (typeof FIELDS)[number]
type Values = Pick<LlmConfig, Field>

/** Values, and what a person calls their fields. */
export type ModelSource = { readonly values: Values; readonly nameOf: (field: Field) => string }

export type ModelSettings = {
  readonly llm: LlmConfig
  readonly names: GivenNames
  /** What is missing, as a sentence that says what to do; undefined if the model can be asked. */
  readonly missing: { readonly field: 'model' | 'api_key'; readonly message: string } | undefined
}

type Given = Pick<RunInvocation, 'model' | 'apiKey' | 'baseUrl'>

export const fromOptions = ({ model, apiKey, baseUrl }: Given): ModelSource => ({
  values: withoutUndefined({ model, api_key: apiKey, base_url: baseUrl }),
  nameOf: (field) => `--${field.replace('_', '-')}`,
})

export const fromFile = ({ path, settings }: SettingsFile): ModelSource => ({
  values: settings,
  nameOf: (field) => `${field} of ${path}`,
})

export const fromPerson = (values: Values): ModelSource => ({ values, nameOf: () => 'what you have entered' })

/** Reads the environment of the process, without a `.env`: call it after `leaveProject`. */
export function fromEnvironment(): ModelSource {
  const read = createReader({})
  const values = withoutUndefined({
    model: read('LLM_MODEL'),
    api_key: readLlmKey(read('LLM_API_KEY')),
    base_url: readLlmUrl(read),
  })
  const isKeyFile = sourceOf('LLM_API_KEY')?.from === 'file'
  const nameOf = (field: Field) => `LLM_${field.toUpperCase()}${field === 'api_key' && isKeyFile ? '_FILE' : ''}`
  return { values, nameOf }
}

/** `sources`: the first one that has a value sets it. `path`: the settings file. */
export function combineModelSettings(sources: readonly ModelSource[], path: string): ModelSettings {
  const sourceFor = (field: Field) => sources.find(({ values }) => values[field] !== undefined)
  const set = FIELDS.flatMap((field) => {
    const source = sourceFor(field)
    return source ? [{ field, value: source.values[field], name: source.nameOf(field) }] : []
  })
  const { api_key, ...given }: Values = Object.fromEntries(set.map(({ field, value }) => [field, value]))
  const keyed = sourceFor('api_key')
  const isElsewhere = keyed !== undefined && isForAnother(keyed.values, given.base_url)
  const llm = withoutUndefined({ ...given, api_key: isElsewhere ? undefined : api_key })
  const names = Object.fromEntries(set.map(({ field, name }) => [`llm_config.${field}`, name]))
  return { llm, names, missing: whatIsMissing(llm, path, isElsewhere ? keyed.nameOf('api_key') : undefined) }
}

/** A key that was given together with an endpoint is never sent to another one. */
function isForAnother({ base_url: own }: Values, base_url: string | undefined): boolean {
  return own !== undefined && (base_url === undefined || originOf(own) !== originOf(base_url))
}

const originOf = (url: string): string => URL.parse(url)?.origin ?? url

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** `otherKey`: what has set a key that is for another endpoint. */
function whatIsMissing(llm: LlmConfig, path: string, otherKey: string | undefined): ModelSettings['missing'] {
  if (llm.model === undefined)
    return { field: 'model', message: `no model is set: give --model, set LLM_MODEL, or write model into ${path}.` }
  // Endpoints that somebody names may need no key.
  const isNamed = llm.base_url !== undefined && otherKey === undefined
  if (llm.api_key !== undefined || isNamed || isLocal(llm)) return undefined
  const why =
    otherKey === undefined
      ? `no key is set for ${llm.model}`
      : `${otherKey} is for another endpoint than ${llm.base_url ?? 'that of the model'}`
  return { field: 'api_key', message: `${why}: set LLM_API_KEY, give --api-key, or write api_key into ${path}.` }
}

/** What is wrong with the model is reported by the run. */
function isLocal(llm: LlmConfig): boolean {
  try {
    return LOCAL_HOSTS.has(new URL(endpointOf(llm).baseUrl).hostname)
  } catch (error) {
    if (error instanceof LlmError) return true
    throw error
  }
}
