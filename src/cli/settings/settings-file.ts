/** Reads the settings file of the command line, and files with MCP servers. Error messages never contain values. */
import { stat } from 'node:fs/promises'
import { z } from 'zod'
import { KeyCommandArgv } from '../../config/model-keys.ts'
import { defaultSettingsPath } from '../../config/paths.ts'
import { NewLlmConfig } from '../../contract/values/llm-config.ts'
import { McpInput } from '../../contract/mcp/mcp-server.ts'
import { SETTINGS } from '../../contract/settings.ts'
import { codeOf } from '../../lib/error-code.ts'
import { readSmallFile, whyUnreadable } from '../../files/small-file.ts'
import { ChatSettings } from './chat-settings.ts'
import { SandboxSettings } from './home-settings.ts'
import { UsageError } from '../command-line/usage-error.ts'

const PersonalSettings = {
  sandbox: SandboxSettings.optional(),
  chat: ChatSettings.optional(),
  hooks: SETTINGS.hooks.create,
  tools: SETTINGS.tools.create,
}
const Settings = z
  .looseObject({
    ...NewLlmConfig.shape,
    api_key_command: KeyCommandArgv.optional(),
    mcp: McpInput.optional(),
    ...PersonalSettings,
  })
  .refine(({ api_key, api_key_command }) => api_key === undefined || api_key_command === undefined, {
    path: ['api_key_command'],
    error: 'set api_key or api_key_command, not both',
  })

/** What no environment variable has. */
export type PersonalSettings = Pick<ModelFileSettings, keyof typeof PersonalSettings>

export type ModelFileSettings = z.infer<typeof Settings>

const KNOWN: ReadonlySet<string> = new Set(Object.keys(Settings.shape))

export type SettingsFile = {
  readonly path: string
  readonly settings: ModelFileSettings
  /** Sentences about the file for the user. */
  readonly notices: readonly string[]
}

/** The default file need not exist. Throws a `UsageError`. */
export async function readSettingsFile(givenPath: string | undefined, signal: AbortSignal): Promise<SettingsFile> {
  const path = givenPath ?? defaultSettingsPath()
  const json = await readJson(path, { mayBeMissing: givenPath === undefined, signal })
  if (json === undefined) return { path, settings: {}, notices: [] }
  const settings = parse(Settings, withoutNulls(json), path)
  refuseRules(settings, path)
  const unknownNames = Object.keys(settings).filter((name) => !KNOWN.has(name))
  const notices =
    unknownNames.length > 0 ? [`${path}: ${unknownNames.join(', ')} ignored; there is no such setting.`] : []
  return { path, settings, notices: [...notices, ...(await modeNotice(path, settings))] }
}

/** Rules in the form of Claude Code: a file that denies must not be read as one that denies nothing. */
const RULES = ['permissions', 'permission_rules', 'allowed_tools', 'disallowed_tools', 'permission_mode'] as const

function refuseRules(settings: ModelFileSettings, path: string): void {
  const foundRule = RULES.find((name) => Object.hasOwn(settings, name))
  if (foundRule === undefined) return
  throw new UsageError(
    `${path}: ${foundRule} cannot be set in this file. Write --allowed-tools, --disallowed-tools and --permission-mode, or put \`permissions\` into .claude/settings.json of the project.`,
  )
}

/** The form of `.mcp.json`, with or without its outer object. Throws a `UsageError`. */
export async function readMcpFile(path: string, signal: AbortSignal): Promise<McpInput> {
  const json = await readJsonFile(path, signal)
  return parse(McpInput, isBare(json) ? { mcpServers: json } : json, path)
}

/** Throws a `UsageError`. */
export const readJsonFile = (path: string, signal: AbortSignal): Promise<unknown> =>
  readJson(path, { mayBeMissing: false, signal })

type Reading = { readonly mayBeMissing: boolean; readonly signal: AbortSignal }

async function readJson(path: string, { mayBeMissing, signal }: Reading): Promise<unknown> {
  const bytes = await readSmallFile(path, signal).catch((cause: unknown) => {
    signal.throwIfAborted()
    if (codeOf(cause) === 'ENOENT' && mayBeMissing) return undefined
    throw new UsageError(`${path} cannot be read (${whyUnreadable(cause)}).`, { cause })
  })
  if (bytes === undefined) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch {
    // The error of the parser quotes the file, which can contain a key.
    throw new UsageError(`${path} is not valid JSON.`)
  }
}

function parse<T>(schema: z.ZodType<T>, json: unknown, path: string): T {
  const { success, data, error } = schema.safeParse(json)
  if (success) return data
  const [issue] = error.issues
  const field = issue?.path.join('.') ?? ''
  throw new UsageError(`${path}: ${field === '' ? 'the file' : field} is not valid: ${issue?.message ?? 'unknown'}.`)
}

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json)

const withoutNulls = (json: unknown): unknown =>
  isObject(json) ? Object.fromEntries(Object.entries(json).filter(([, value]) => value !== null)) : json

const isBare = (json: unknown): boolean =>
  isObject(json) && !Object.keys(json).some((name) => Object.hasOwn(McpInput.shape, name))

/** Headers are credentials as well. */
export const holdsSecrets = ({ api_key, extra_headers }: ModelFileSettings): boolean =>
  api_key !== undefined || extra_headers !== undefined

/** A key in a file that others can read is not secret. */
async function modeNotice(path: string, settings: ModelFileSettings): Promise<string[]> {
  if (!holdsSecrets(settings) || process.platform === 'win32') return []
  const { mode } = await stat(path)
  return (mode & 0o077) === 0 ? [] : [`${path} contains a key and other users can read it; run chmod 600 on it.`]
}
