/**
 * Turns the configuration that a client requests into the stored one: fills in defaults, splits off secrets, and
 * reports unused fields as warnings.
 */
import type { CreateConversation, UpdateConfig } from '../../contract/conversation.ts'
import type { Agents } from '../../contract/agents/definition.ts'
import type { McpServers } from '../../contract/mcp/mcp-server.ts'
import type { PermissionRules } from '../../contract/values/permission.ts'
import { modeNamed } from '../../contract/values/permission.ts'
import { LlmConfig, MASK, NewLlmConfig, maskLlmConfig, splitDump } from '../../contract/values/llm-config.ts'
import { Problem, describeIssue } from '../../contract/problem.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import type { Hooks } from '../../contract/hooks/hooks.ts'
import { maskHooks } from '../../contract/hooks/hooks.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { LoadedProject } from '../../project/load-project.ts'
import type { LlmChange, LlmDefaults } from './llm-origin.ts'
import { isFor, originOf } from './llm-origin.ts'
import { redactClientTools } from '../client-tools/check-client-tools.ts'
import { checkRules, NO_RULES } from './permission-rules.ts'
import type { Settings } from '../../state/settings.ts'
import type { DerivedName, NameIn } from '../../contract/setting-fields.ts'
import { namesIn } from '../../contract/setting-fields.ts'
import { SETTINGS } from '../../contract/settings.ts'

/** `config` is the model's configuration without secrets; `warnings` name the unused fields. */
export type ParsedLlm = { readonly config: LlmConfig; readonly warnings: readonly string[] }

/** Checks `llm_config` of a create request. Throws a `Problem` without repeating a value. */
export function parseNewLlm(dump: CreateConversation['llm_config'], defaults: LlmDefaults): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  if (hasMask(config)) {
    throw new Problem('invalid_request', 'llm_config holds a masked secret; send the secret itself, or leave it out.')
  }
  const model = config.model ?? defaults.model
  if (model === undefined) {
    throw new Problem(
      'invalid_request',
      'llm_config.model is missing and the server has no default; send one, or set LLM_MODEL.',
    )
  }
  const base_url = config.base_url ?? defaults.base_url
  const provider = config.provider ?? defaultProvider({ model, base_url }, defaults)
  const whole = { ...config, model, ...withoutUndefined({ base_url, provider }) }
  return { config: defaults.vendorKeys?.withOnlyVendor(whole) ?? whole, warnings }
}

/** The default belongs to the default endpoint, and without one to the default model. */
function defaultProvider({ model, base_url }: LlmConfig, defaults: LlmDefaults): LlmConfig['provider'] {
  const isDefault = base_url === defaults.base_url && (base_url !== undefined || model === defaults.model)
  return isDefault ? defaults.provider : undefined
}

/** Checks `llm_config` of an update. A masked key sent back means "unchanged" and is left out. */
export function parseLlmUpdate(dump: NonNullable<UpdateConfig['llm_config']>): ParsedLlm {
  const { config, warnings } = parseLlm(dump)
  const { api_key, ...rest } = config
  return { config: { ...rest, ...(api_key !== undefined && api_key !== MASK && { api_key }) }, warnings }
}

/** Returns the stored secrets after an update; a header whose value is masked keeps its stored value. */
export function mergeLlmSecrets(
  keptSecrets: Readonly<Record<string, string>>,
  update: LlmConfig,
): Record<string, string> {
  const before = new Map(Object.entries(keptHeaders(keptSecrets)))
  const headers = Object.entries(update.extra_headers ?? {}).map(([name, value]) => [
    name,
    value === MASK ? before.get(name) : value,
  ])
  const extra_headers = withoutUndefined(Object.fromEntries(headers))
  return { ...keptSecrets, ...llmSecrets({ ...update, ...(update.extra_headers && { extra_headers }) }) }
}

/**
 * Returns the model's configuration as a request needs it: the stored one with its secrets restored, or without a key if none
 * was sent. Throws an `LlmError` if they are lost.
 */
export function withLlmSecrets(storedLlm: LlmConfig, keptSecrets: Readonly<Record<string, string>>): LlmConfig {
  const { api_key, extra_headers, ...config } = storedLlm
  const secrets = isFor(originOf(config), keptSecrets) ? keptSecrets : {}
  // Do not substitute the server's own key: the conversation was created to be billed to another one.
  if ((api_key !== undefined && !secrets['api_key']) || (extra_headers && !secrets['extra_headers'])) {
    throw new LlmError(
      'auth',
      'The credentials of this conversation cannot be decrypted, or belong to another endpoint; send llm_config.api_key and llm_config.extra_headers again, or start the server with the key they were stored with.',
    )
  }
  return {
    ...config,
    ...(secrets['api_key'] !== undefined && { api_key: secrets['api_key'] }),
    ...(secrets['extra_headers'] !== undefined && { extra_headers: keptHeaders(secrets) }),
  }
}

/** Returns the headers of a configuration from its encrypted secrets. */
export function keptHeaders(secrets: Readonly<Record<string, string>>): Record<string, string> {
  return LlmConfig.shape.extra_headers.unwrap().parse(JSON.parse(secrets['extra_headers'] ?? '{}'))
}

/** Returns the secrets of a configuration, by name, to be stored encrypted. */
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
  readonly additionalDirectories: string[] | undefined
  readonly tools: readonly string[]
  /** The hooks of the request and of files. */
  readonly hooks: Hooks | undefined
  /** Redacted. */
  readonly project: LoadedProject | undefined
  readonly mcp: McpServers | undefined
  /** Checked. */
  readonly agents: Agents | undefined
  /** Redacts text that the client wrote. */
  readonly redact: (text: string) => string
}

export function newSettings(parts: NewSettings): Settings {
  const { request, idempotency, llm, workdir, additionalDirectories, tools, hooks, project, mcp, agents, redact } =
    parts
  const { permission_mode, client_tools } = request
  const derivedValues: DerivedValues = {
    workdir,
    additional_directories: additionalDirectories,
    made_workdir: request.workdir === undefined ? workdir : undefined,
    llm_config: maskLlmConfig(llm),
    tools: [...tools],
    permission_mode: permission_mode ? modeNamed(permission_mode) : project?.mode,
    permission_rules: rulesIn(request, redact),
    hooks: hooks && maskHooks(hooks),
    mcp,
    client_tools: client_tools && redactClientTools(client_tools, redact),
    client_hooks: undefined,
    agents,
    idempotency,
    project_settings: project?.settings,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a value for each setting, which the schemas of a create have accepted
  return withoutUndefined({ ...sentSettings(request, redact), ...derivedValues }) as Settings
}

/** A value for each setting that is computed; one without would be a type error. */
type DerivedValues = { readonly [K in DerivedName]: Settings[K] | undefined }

/** The settings that are stored as they were sent, or with secret values redacted. */
function sentSettings(request: CreateConversation, redact: (text: string) => string): Record<string, unknown> {
  const sentNames = namesIn('create').filter((name) => SETTINGS[name].from !== 'derived')
  return Object.fromEntries(
    sentNames.map((name) => [name, SETTINGS[name].from === 'text' ? mapStrings(request[name], redact) : request[name]]),
  )
}

/** Returns the settings of a request that are stored as they are sent. With a secret replaced, they would be others. */
export function storedAsSent(request: CreateConversation | UpdateConfig): Record<string, unknown> {
  const sentValues: Readonly<Record<string, unknown>> = request
  const names = namesIn('create').filter((name) => SETTINGS[name].from === 'sent')
  return Object.fromEntries(names.map((name) => [name, sentValues[name]]))
}

/** Undefined without any. Throws a `Problem` for a text that is not a rule. */
export function rulesIn(
  { permission_rules: rules = NO_RULES, allowed_tools: allow = [], disallowed_tools: deny = [] }: CreateConversation,
  redact: (text: string) => string,
): PermissionRules | undefined {
  if ([...Object.values(rules), allow, deny].every((texts) => texts.length === 0)) return undefined
  const own = checkRules('permission_rules', rules, redact)
  const allowRules = checkRules('allowed_tools', { allow }, redact)
  const denyRules = checkRules('disallowed_tools', { deny }, redact)
  return {
    allow: [...new Set([...own.allow, ...allowRules.allow])],
    ask: own.ask,
    deny: [...new Set([...own.deny, ...denyRules.deny])],
  }
}

/** A checked update. */
export type NewChanges = {
  readonly update: UpdateConfig
  readonly llm: LlmChange | undefined
  readonly mcp: McpServers | undefined
  readonly workdir: string | undefined
  readonly additionalDirectories: string[] | undefined
  /** Checked. */
  readonly agents: Agents | undefined
  readonly redact: (text: string) => string
}

/**
 * Returns the `changes` of a `ConfigUpdate`: only the fields that were sent, secrets masked, and the names of dropped
 * credentials.
 */
export function changesOf(checkedChanges: NewChanges): Record<string, unknown> {
  const { update, llm, mcp, workdir, additionalDirectories, agents, redact } = checkedChanges
  const {
    llm_config: _,
    workdir: __,
    additional_directories: _____,
    agents: ___,
    mcp: ____,
    permission_mode: mode,
    hooks,
    client_tools,
    ...sentFields
  } = update
  const llm_config = llm && Object.keys(llm.update).length ? maskLlmConfig(llm.update) : undefined
  const drops = llm?.dropped.length ? llm.dropped : undefined
  const ownValues: { readonly [K in DerivedName & NameIn<'update'>]: unknown } = {
    llm_config,
    workdir,
    additional_directories: additionalDirectories,
    mcp,
    client_tools: client_tools && redactClientTools(client_tools, redact),
    agents,
    hooks: hooks && maskHooks(hooks),
    permission_mode: mode && modeNamed(mode),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
  return withoutUndefined({ ...(mapStrings(sentFields, redact) as typeof sentFields), ...ownValues, dropped: drops })
}

/** Returns the visible fields of a configuration, by name. */
export function shownFields(llm: LlmConfig | undefined): Record<string, unknown> {
  const { api_key: _, extra_headers: headers, ...otherFields } = llm ?? {}
  const visibleFields = { ...otherFields, extra_headers: headers && Object.keys(headers) }
  return Object.fromEntries(Object.entries(visibleFields).map(([name, value]) => [`llm_config.${name}`, value]))
}

/** More issues would not help anyone to fix the request. */
const MAX_ISSUES = 20

function parseLlm(dump: Record<string, unknown> | undefined): ParsedLlm {
  const { used, unused } = splitDump(dump ?? {})
  const parseResult = NewLlmConfig.safeParse(used)
  if (parseResult.success)
    return { config: parseResult.data, warnings: unused.map((name) => `llm_config.${name} is not used by this server`) }
  const issues = parseResult.error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => describeIssue(issue, ['llm_config'], Object.keys(LlmConfig.shape)))
  throw new Problem('invalid_request', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), {
    details: { issues },
  })
}

const hasMask = (config: LlmConfig) =>
  config.api_key === MASK || Object.values(config.extra_headers ?? {}).includes(MASK)
