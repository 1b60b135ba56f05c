/** From what a client asks for to what a conversation is: defaults filled in, secrets split off, leftovers told as warnings. */
import type { CreateConversation, UpdateConfig } from '../contract/conversation.ts'
import { LlmConfig, MASK, maskLlmConfig, splitDump } from '../contract/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import { endpointOf } from '../llm/endpoint.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { Settings } from './state.ts'

export type LlmDefaults = { readonly model?: string; readonly api_key?: string; readonly base_url?: string }

/** `config` without secrets masked, as the model is to be called with; `warnings` name what is not used. */
export type ParsedLlm = { readonly config: LlmConfig; readonly warnings: readonly string[] }

/** Checks `llm_config` of a create request. Throws a `Problem` without repeating a value. */
export function parseNewLlm(dump: CreateConversation['llm_config'], defaults: LlmDefaults): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  if (hasMask(config)) {
    throw new Problem('invalid_request', 'llm_config holds a masked secret; a new conversation needs the secret itself, or none.')
  }
  const model = config.model ?? defaults.model
  if (model === undefined) {
    throw new Problem('invalid_request', 'llm_config.model is missing and the server has no default; send one, or set LLM_MODEL.')
  }
  const base_url = config.base_url ?? defaults.base_url
  return { config: { ...config, model, ...(base_url !== undefined && { base_url }) }, warnings }
}

/** Checks `llm_config` of an update. A masked secret sent back means "unchanged" and is left out. */
export function parseLlmUpdate(dump: NonNullable<UpdateConfig['llm_config']>): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  const { api_key, extra_headers, ...rest } = config
  return {
    config: {
      ...rest,
      ...(api_key !== undefined && api_key !== MASK && { api_key }),
      ...(extra_headers && !Object.values(extra_headers).includes(MASK) && { extra_headers }),
    },
    warnings,
  }
}

/** The model's configuration as a request needs it: the stored one with its secrets put back. */
export function withLlmSecrets(stored: LlmConfig, secrets: Record<string, string>, defaults: LlmDefaults): LlmConfig {
  const { api_key: _masked, extra_headers: _maskedToo, ...config } = stored
  // The server's own key goes to the server's own endpoint only: a client must not be able to have it sent elsewhere.
  const api_key = secrets['api_key'] ?? (isDefaultEndpoint(config, defaults) ? defaults.api_key : undefined)
  return {
    ...config,
    ...(api_key !== undefined && { api_key }),
    ...(secrets['extra_headers'] !== undefined && { extra_headers: LlmConfig.shape.extra_headers.unwrap().parse(JSON.parse(secrets['extra_headers'])) }),
  }
}

function isDefaultEndpoint(config: LlmConfig, defaults: LlmDefaults): boolean {
  try {
    // The model's name alone can lead elsewhere: `openrouter/…` without a base_url goes to OpenRouter.
    return endpointOf(config).baseUrl === endpointOf({ model: 'gpt', ...(defaults.base_url !== undefined && { base_url: defaults.base_url }) }).baseUrl
  } catch {
    return false // it leads nowhere; the request will say so
  }
}

/** What of a configuration is kept encrypted, by name. */
export function llmSecrets(config: LlmConfig): Record<string, string> {
  return {
    ...(config.api_key !== undefined && { api_key: config.api_key }),
    ...(config.extra_headers && { extra_headers: JSON.stringify(config.extra_headers) }),
  }
}

export type NewSettings = {
  readonly request: CreateConversation
  readonly llm: LlmConfig
  readonly workdir: string
  readonly tools: readonly string[]
}

export function newSettings({ request, llm, workdir, tools }: NewSettings): Settings {
  const { title, user_id, metadata, microagents, resume_on_start, visualize, max_seconds_per_run } = request
  return withoutUndefined({
    title,
    user_id,
    metadata,
    workdir,
    owns_workdir: request.workdir === undefined,
    llm_config: maskLlmConfig(llm),
    tools: [...tools],
    max_iteration_per_run: request.max_iteration_per_run,
    max_seconds_per_run,
    microagents,
    resume_on_start,
    visualize,
  })
}

/** The `changes` of a `ConfigUpdate`: only what was sent, secrets masked. */
export function changesOf(update: UpdateConfig, llm: LlmConfig | undefined, workdir: string | undefined): Record<string, unknown> {
  const { llm_config: _, workdir: __, ...plain } = update
  const masked = llm && Object.keys(llm).length ? maskLlmConfig(llm) : undefined
  return withoutUndefined({ ...plain, llm_config: masked, workdir, ...(workdir !== undefined && { owns_workdir: false }) })
}

function parseLlm(dump: Record<string, unknown> | undefined): ParsedLlm {
  const { used, unused } = splitDump(dump ?? {})
  const parsed = LlmConfig.safeParse(used)
  if (parsed.success) return { config: parsed.data, warnings: unused.map((name) => `llm_config.${name} is not used by this server`) }
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: ['llm_config', ...path].join('.'), message }))
  throw new Problem('invalid_request', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), { details: { issues } })
}

const hasMask = (config: LlmConfig) => config.api_key === MASK || Object.values(config.extra_headers ?? {}).includes(MASK)
