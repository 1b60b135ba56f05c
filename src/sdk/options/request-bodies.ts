/** Writes the options of a query as requests: to create a conversation, or to change one that is continued. */
import { resolve } from 'node:path'
import type { BodyOf } from '../../client/operations/operations.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { invalid } from '../errors/invalid.ts'
import { isSchema, jsonSchemaOf } from '../tools/schema.ts'
import { toSnakeCase } from './camel-case.ts'
import { splitHooks } from './hooks-option.ts'
import type { OwnOptions } from './other-names.ts'
import type { ConvertedSetting, PlainSetting } from './setting-options.ts'
import { isChangeable, optionNameOf, PLAIN_SETTINGS, plainFields } from './setting-options.ts'
import { splitTools } from './split-tools.ts'

type Wire = BodyOf<'createConversation'>

/** Settings that options have in another form; one without an entry would be a type error. */
const CONVERTED: { readonly [K in ConvertedSetting]: (options: OwnOptions) => Wire[K] } = {
  workdir: workdirOf,
  additional_directories: directoriesOf,
  llm_config: llmConfigOf,
  tools: ({ tools }) => splitTools(tools).names,
  client_tools: ({ tools }) => listUnlessEmpty(splitTools(tools).own.map(({ declaration }) => declaration)),
  output_schema: outputSchemaOf,
  permission_mode: modeOf,
  hooks: ({ hooks }) => splitHooks(hooks).wire,
  tool_config: ({ toolConfig }) => toolConfig && toolConfigOf(toolConfig),
  mcp: ({ mcpServers }) => mcpServers && { mcpServers },
  agents: ({ agents }) => agents && agentsOf(agents),
}

export function createBody(options: OwnOptions, id: string): Wire {
  const { conversation, systemPrompt, settingSources, allowedTools = [], disallowedTools = [] } = options
  return {
    ...conversation,
    id: options.sessionId ?? conversation?.id ?? id,
    ...settingsIn(options),
    ...withoutUndefined({
      allowed_tools: listUnlessEmpty(allowedTools),
      disallowed_tools: listUnlessEmpty(disallowedTools),
      setting_sources: settingSources,
      system_prompt: typeof systemPrompt === 'string' ? systemPrompt : undefined,
      system_prompt_extensions: typeof systemPrompt === 'object' ? [systemPrompt.append] : undefined,
    }),
  }
}

/** A directory names the session to continue, and a run has the schema that is given with its message. */
const NOT_UPDATED: ReadonlySet<string> = new Set<ConvertedSetting>(['workdir', 'output_schema'])

/** Undefined if nothing changes. Throws if an option can only be set for a new session. */
export function updateBody(options: OwnOptions): BodyOf<'updateConfig'> | undefined {
  const { tools, ...givenSettings } = settingsIn(options)
  const entries = Object.entries(givenSettings).filter(([name]) => !NOT_UPDATED.has(name))
  const fixedNames = [
    ...(tools !== undefined && tools.length > 0 ? ['tools'] : []),
    ...(['systemPrompt', 'settingSources', 'conversation'] as const).filter((name) => options[name] !== undefined),
    ...PLAIN_SETTINGS.filter((name) => givenSettings[name] !== undefined && !isChangeable(name)).map(optionNameOf),
  ]
  if (fixedNames.length > 0)
    throw invalid(
      `${fixedNames.join(', ')}: a session keeps what it was created with. Leave it out, or begin a new session.${
        fixedNames.includes('tools')
          ? ' To replace the tools of this program only, leave out the names of other tools.'
          : ''
      }`,
    )
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

/** The settings that options give, by the names of the wire. */
function settingsIn(options: OwnOptions): Partial<Pick<Wire, PlainSetting | ConvertedSetting>> {
  const convertedEntries = Object.entries(CONVERTED).map(([name, convert]) => [name, convert(options)])
  return withoutUndefined({ ...plainFields(options), ...Object.fromEntries(convertedEntries) })
}

const listUnlessEmpty = <T>(items: readonly T[]): T[] | undefined => (items.length > 0 ? [...items] : undefined)

function llmConfigOf({ llm = {}, provider, model, apiKey, baseUrl }: OwnOptions): Wire['llm_config'] {
  const own = withoutUndefined({ provider, model, api_key: apiKey, base_url: baseUrl })
  const config = { ...toSnakeCase(llm), ...own }
  return Object.keys(config).length > 0 ? config : undefined
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

function directoriesOf({ additionalDirectories: paths, server }: OwnOptions): string[] | undefined {
  return paths?.map((path) => (server ? path : resolve(path)))
}

function agentsOf(agents: NonNullable<OwnOptions['agents']>): BodyOf<'createConversation'>['agents'] {
  const definitions = Object.entries(agents).map(([name, { disallowedTools, maxSteps, permissionMode, ...same }]) => {
    const renamedFields = { disallowed_tools: disallowedTools, max_steps: maxSteps, permission_mode: permissionMode }
    return [name, withoutUndefined({ ...same, tools: same.tools && [...same.tools], ...renamedFields })]
  })
  return Object.fromEntries(definitions)
}
