/** From what a client asks for to what a conversation is: defaults filled in, secrets split off, leftovers told as warnings. */
import type { CreateConversation, UpdateConfig } from '../../contract/conversation.ts'
import { LlmConfig, MASK, NewLlmConfig, maskLlmConfig, splitDump } from '../../contract/llm-config.ts'
import { Problem, describeIssue } from '../../contract/problem.ts'
import { endpointOf } from '../../llm/endpoint.ts'
import { LlmError } from '../../llm/llm.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { LlmChange } from './llm-origin.ts'
import { isFor, originOf } from './llm-origin.ts'
import type { Settings } from '../state/state.ts'

export type LlmDefaults = { readonly model?: string; readonly api_key?: string; readonly base_url?: string }

/** `config` without secrets masked, as the model is to be called with; `warnings` name what is not used. */
export type ParsedLlm = { readonly config: LlmConfig; readonly warnings: readonly string[] }

/** Checks `llm_config` of a create request. Throws a `Problem` without repeating a value. */
export function parseNewLlm(dump: CreateConversation['llm_config'], defaults: LlmDefaults): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  if (hasMask(config)) {
    throw new Problem(
      'invalid_request',
      'llm_config holds a masked secret; a new conversation needs the secret itself, or none.',
    )
  }
  const model = config.model ?? defaults.model
  if (model === undefined) {
    throw new Problem(
      'invalid_request',
      'llm_config.model is missing and the server has no default; send one, or set LLM_MODEL.',
    )
  }
  const base_url = config.base_url ?? defaults.base_url
  return { config: { ...config, model, ...(base_url !== undefined && { base_url }) }, warnings }
}

/** Checks `llm_config` of an update. A masked key sent back means "unchanged" and is left out. */
export function parseLlmUpdate(dump: NonNullable<UpdateConfig['llm_config']>): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  const { api_key, ...rest } = config
  return { config: { ...rest, ...(api_key !== undefined && api_key !== MASK && { api_key }) }, warnings }
}

/** The kept secrets after an update; a header whose value is masked keeps the one it has. */
export function mergeLlmSecrets(kept: Readonly<Record<string, string>>, update: LlmConfig): Record<string, string> {
  const before = keptHeaders(kept)
  const headers = Object.entries(update.extra_headers ?? {}).map(
    ([name, value]) => [name, value === MASK ? before[name] : value] as const,
  )
  const extra_headers = withoutUndefined(Object.fromEntries(headers))
  return { ...kept, ...llmSecrets({ ...update, ...(update.extra_headers && { extra_headers }) }) }
}

/** The model's configuration as a request needs it: the stored one with its secrets put back. Throws an `LlmError` when they are lost. */
export function withLlmSecrets(
  stored: LlmConfig,
  kept: Readonly<Record<string, string>>,
  defaults: LlmDefaults,
): LlmConfig {
  const { api_key, extra_headers, ...config } = stored
  const secrets = isFor(originOf(config), kept) ? kept : {}
  // Not the server's own key in its place: the conversation was made to be paid for by another one.
  if ((api_key !== undefined && !secrets['api_key']) || (extra_headers && !secrets['extra_headers'])) {
    throw new LlmError(
      'auth',
      'The credentials of this conversation cannot be decrypted, or are for another endpoint; send llm_config.api_key and extra_headers again, or start the server with the key they were stored with.',
    )
  }
  // The server's own key goes to the server's own endpoint only: a client must not be able to have it sent elsewhere.
  const key = secrets['api_key'] ?? (isDefaultEndpoint(config, defaults) ? defaults.api_key : undefined)
  return {
    ...config,
    ...(key !== undefined && { api_key: key }),
    ...(secrets['extra_headers'] !== undefined && { extra_headers: keptHeaders(secrets) }),
  }
}

/** The headers of a configuration, out of what is kept of it encrypted. */
export function keptHeaders(secrets: Readonly<Record<string, string>>): Record<string, string> {
  return LlmConfig.shape.extra_headers.unwrap().parse(JSON.parse(secrets['extra_headers'] ?? '{}'))
}

function isDefaultEndpoint(config: LlmConfig, defaults: LlmDefaults): boolean {
  try {
    // The model's name alone can lead elsewhere: `openrouter/…` without a base_url goes to OpenRouter.
    return (
      endpointOf(config).baseUrl ===
      endpointOf({ model: 'gpt', ...(defaults.base_url !== undefined && { base_url: defaults.base_url }) }).baseUrl
    )
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
  readonly idempotency: Settings['idempotency']
  readonly llm: LlmConfig
  readonly workdir: string
  readonly tools: readonly string[]
  /** For what the client writes in words of its own. */
  readonly redact: (text: string) => string
}

export function newSettings({ request, idempotency, llm, workdir, tools, redact }: NewSettings): Settings {
  const {
    title,
    user_id,
    metadata,
    microagents,
    confirmation_mode,
    resume_on_start,
    visualize,
    limits,
    max_seconds_per_run,
    max_iteration_per_run,
    network,
  } = request
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
  const words = mapStrings(withoutUndefined({ title, user_id, metadata, microagents }), redact) as Pick<
    Settings,
    'title' | 'user_id' | 'metadata' | 'microagents'
  >
  const plain = withoutUndefined({
    confirmation_mode,
    idempotency,
    max_seconds_per_run,
    resume_on_start,
    visualize,
    limits,
    network,
    made_workdir: request.workdir === undefined ? workdir : undefined,
  })
  return { ...words, ...plain, workdir, llm_config: maskLlmConfig(llm), tools: [...tools], max_iteration_per_run }
}

/** What an update comes to, checked. */
export type NewChanges = {
  readonly update: UpdateConfig
  readonly llm: LlmChange | undefined
  readonly workdir: string | undefined
  readonly redact: (text: string) => string
}

/** The `changes` of a `ConfigUpdate`: only what was sent, secrets masked, and the names of credentials that are gone. */
export function changesOf({ update, llm, workdir, redact }: NewChanges): Record<string, unknown> {
  const { llm_config: _, workdir: __, ...words } = update
  const llm_config = llm && Object.keys(llm.update).length ? maskLlmConfig(llm.update) : undefined
  const dropped = llm?.dropped.length ? llm.dropped : undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
  return withoutUndefined({ ...(mapStrings(words, redact) as typeof words), llm_config, dropped, workdir })
}

/** The fields of a configuration that are shown, by name. */
export function shownFields(llm: LlmConfig | undefined): Record<string, unknown> {
  const { api_key: _, extra_headers: __, ...shown } = llm ?? {}
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [`llm_config.${name}`, value]))
}

/** More would not help anyone to mend the request. */
const MAX_ISSUES = 20

function parseLlm(dump: Record<string, unknown> | undefined): ParsedLlm {
  const { used, unused } = splitDump(dump ?? {})
  const parsed = NewLlmConfig.safeParse(used)
  if (parsed.success)
    return { config: parsed.data, warnings: unused.map((name) => `llm_config.${name} is not used by this server`) }
  const issues = parsed.error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => describeIssue(issue, ['llm_config'], Object.keys(LlmConfig.shape)))
  throw new Problem('invalid_request', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), {
    details: { issues },
  })
}

const hasMask = (config: LlmConfig) =>
  config.api_key === MASK || Object.values(config.extra_headers ?? {}).includes(MASK)
