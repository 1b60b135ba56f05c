/** Writes the options of a query as requests: to create a conversation, or to change one that is continued. */
import { resolve } from 'node:path'
import type { BodyOf } from '../../client/operations/operations.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { invalid } from '../invalid.ts'
import { isSchema, jsonSchemaOf } from '../tools/schema.ts'
import { toSnakeCase } from './camel-case.ts'
import { splitHooks } from './hooks-option.ts'
import type { OwnOptions } from './other-names.ts'
import { splitTools } from './split-tools.ts'

export function createBody(options: OwnOptions, id: string): BodyOf<'createConversation'> {
  const { systemPrompt, settingSources, mcpServers, allowedTools, disallowedTools, agents } = options
  const { names } = splitTools(options.tools)
  return withoutUndefined({
    id,
    ...options.conversation,
    ...commonFields(options),
    workdir: workdirOf(options) ?? options.conversation?.workdir,
    tools: names ?? options.conversation?.tools,
    ...(allowedTools && { allowed_tools: [...allowedTools] }),
    ...(disallowedTools && { disallowed_tools: [...disallowedTools] }),
    ...(settingSources && { setting_sources: settingSources }),
    ...(mcpServers && { mcp: { mcpServers } }),
    ...(typeof systemPrompt === 'string' && { system_prompt: systemPrompt }),
    ...(typeof systemPrompt === 'object' && { system_prompt_extensions: [systemPrompt.append] }),
    ...(options.outputSchema && { output_schema: outputSchemaOf(options) }),
    ...(agents && { agents: agentsOf(agents) }),
  })
}

/** Undefined if nothing changes. Throws if an option can only be set for a new session. */
export function updateBody(options: OwnOptions): BodyOf<'updateConfig'> | undefined {
  const fixed = (['tools', 'systemPrompt', 'settingSources', 'mcpServers', 'agents', 'conversation'] as const).filter(
    (name) => options[name] !== undefined && !(name === 'tools' && splitTools(options.tools).names?.length === 0),
  )
  if (fixed.length > 0)
    throw invalid(
      `${fixed.join(', ')}: a session keeps what it was created with. Leave it out, or begin a new session.${
        fixed.includes('tools') ? ' To replace the tools of this program only, leave out the names of other tools.' : ''
      }`,
    )
  const body = withoutUndefined(commonFields(options))
  return Object.keys(body).length > 0 ? body : undefined
}

/** What both requests accept. */
function commonFields(options: OwnOptions) {
  const { wire } = splitHooks(options.hooks)
  const { own } = splitTools(options.tools)
  const llm = withoutUndefined({
    ...(options.llm && toSnakeCase(options.llm)),
    ...withoutUndefined({
      provider: options.provider,
      model: options.model,
      api_key: options.apiKey,
      base_url: options.baseUrl,
    }),
  })
  return {
    ...(Object.keys(llm).length > 0 && { llm_config: llm }),
    ...withoutUndefined({
      max_iteration_per_run: options.maxSteps,
      max_seconds_per_run: options.timeoutS,
      max_budget_usd: options.maxBudgetUsd,
      allow_unpriced: options.allowUnpriced,
      permission_mode: modeOf(options),
      hooks: wire,
      enable_message_rewrite_hooks: options.enableMessageRewriteHooks,
      tool_config: options.toolConfig && toolConfigOf(options.toolConfig),
    }),
    ...(own.length > 0 && { client_tools: own.map(({ declaration }) => declaration) }),
  }
}

/** The approver of `callback` is in this program: the server asks it like a user. */
function modeOf({ permissionMode, canUseTool, interactiveApprover, resume, fork, continue: last }: OwnOptions) {
  const decidesHere = canUseTool !== undefined || Boolean(interactiveApprover)
  if (permissionMode === 'callback' && decidesHere) return 'default'
  const isNew = resume === undefined && !fork && !last
  return permissionMode ?? (decidesHere && isNew ? 'default' : undefined)
}

const toolConfigOf = (config: object) =>
  Object.fromEntries(
    Object.entries(config).map(([name, limits]: [string, object | undefined]) => [name, limits && toSnakeCase(limits)]),
  )

export function outputSchemaOf({ outputSchema }: OwnOptions): Record<string, unknown> | undefined {
  return isSchema(outputSchema) ? jsonSchemaOf(outputSchema, 'the output') : outputSchema
}

/** Relative paths are relative to the current directory of this process, except on a server elsewhere. */
export function workdirOf({ cwd, projectDir, server }: OwnOptions): string | undefined {
  if (cwd !== undefined && projectDir !== undefined && resolve(cwd) !== resolve(projectDir))
    throw invalid('cwd and projectDir must be the same directory: the agent works in its project. Pass one of them.')
  const path = cwd ?? projectDir
  return path === undefined || server ? path : resolve(path)
}

function agentsOf(agents: NonNullable<OwnOptions['agents']>): BodyOf<'createConversation'>['agents'] {
  const definitions = Object.entries(agents).map(([name, { disallowedTools, maxSteps, permissionMode, ...same }]) => {
    const renamed = { disallowed_tools: disallowedTools, max_steps: maxSteps, permission_mode: permissionMode }
    return [name, withoutUndefined({ ...same, tools: same.tools && [...same.tools], ...renamed })]
  })
  return Object.fromEntries(definitions)
}
