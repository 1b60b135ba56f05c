/** Combines the settings of the model: options take precedence over the environment, and that over the settings file. */
import type { LlmConfig } from '../../contract/llm-config.ts'
import { createReader } from '../../config/environment.ts'
import { readLlmKey, readLlmUrl } from '../../config/keys.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { LlmError } from '../../llm/llm.ts'
import { endpointOf } from '../../llm/endpoint.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import type { ModelFileSettings } from './settings-file.ts'

type Source = Pick<LlmConfig, 'model' | 'api_key' | 'base_url'>

export type ModelSettings = {
  readonly llm: LlmConfig
  /** What is missing, as a sentence that says what to do; undefined if the model can be asked. */
  readonly missing: { readonly field: 'model' | 'api_key'; readonly message: string } | undefined
}

type Given = Pick<RunInvocation, 'model' | 'apiKey' | 'baseUrl'>

/** Of the process, without a `.env`: call it after `leaveProject`. */
export function readEnvironment(): Source {
  const read = createReader({})
  return withoutUndefined({
    model: read('LLM_MODEL'),
    api_key: readLlmKey(read('LLM_API_KEY')),
    base_url: readLlmUrl(read),
  })
}

export function combineModelSettings(given: Given, environment: Source, settings: ModelFileSettings): ModelSettings {
  const options = withoutUndefined({ model: given.model, api_key: given.apiKey, base_url: given.baseUrl })
  const sources: readonly Source[] = [options, environment, settings]
  const { temperature, reasoning_effort } = settings
  const [model, base_url] = [first(sources, 'model'), first(sources, 'base_url')]
  const keyed = sources.find(({ api_key }) => api_key !== undefined)
  const isElsewhere = keyed !== undefined && isForAnother(keyed, base_url)
  const api_key = isElsewhere ? undefined : keyed?.api_key
  const llm = withoutUndefined({ model, base_url, api_key, temperature, reasoning_effort })
  return { llm, missing: whatIsMissing(llm, isElsewhere) }
}

const first = (sources: readonly Source[], field: keyof Source) =>
  sources.find((source) => source[field] !== undefined)?.[field]

/** A key that was given together with an endpoint is never sent to another one. */
function isForAnother({ base_url: own }: Source, base_url: string | undefined): boolean {
  return own !== undefined && (base_url === undefined || originOf(own) !== originOf(base_url))
}

const originOf = (url: string): string => URL.parse(url)?.origin ?? url

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

function whatIsMissing(llm: LlmConfig, isElsewhere: boolean): ModelSettings['missing'] {
  if (llm.model === undefined)
    return {
      field: 'model',
      message: 'no model is set: give --model, set LLM_MODEL, or write model into ~/.openhands/settings_sdk.json.',
    }
  // Endpoints that somebody names may need no key.
  if (llm.api_key !== undefined || (llm.base_url !== undefined && !isElsewhere) || isLocal(llm)) return undefined
  const why = isElsewhere ? `the key is for another endpoint than ${llm.base_url}` : `no key is set for ${llm.model}`
  return {
    field: 'api_key',
    message: `${why}: set LLM_API_KEY, give --api-key, or write api_key into ~/.openhands/settings_sdk.json.`,
  }
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
