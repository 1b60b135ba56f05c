/** Reads the settings file of the command line, and files with MCP servers. Error messages never contain values. */
import { readFile, stat } from 'node:fs/promises'
import { z } from 'zod'
import { defaultSettingsPath } from '../../config/paths.ts'
import { LlmConfig } from '../../contract/llm-config.ts'
import { McpInput } from '../../contract/mcp/mcp-server.ts'
import { codeOf } from '../../lib/error-code.ts'
import { UsageError } from '../command-line/usage-error.ts'

const { model, api_key, base_url, temperature, reasoning_effort } = LlmConfig.shape

const Settings = z.looseObject({ model, api_key, base_url, temperature, reasoning_effort, mcp: McpInput.optional() })
export type ModelFileSettings = z.infer<typeof Settings>

const KNOWN: ReadonlySet<string> = new Set(Object.keys(Settings.shape))

export type SettingsFile = {
  readonly path: string
  readonly settings: ModelFileSettings
  /** Sentences about the file for the user. */
  readonly notices: readonly string[]
}

/** The default file need not exist. Throws a `UsageError`. */
export async function readSettingsFile(given: string | undefined): Promise<SettingsFile> {
  const path = given ?? defaultSettingsPath()
  const json = await readJson(path, { mayBeMissing: given === undefined })
  if (json === undefined) return { path, settings: {}, notices: [] }
  const settings = parse(Settings, withoutNulls(json), path)
  const unknown = Object.keys(settings).filter((name) => !KNOWN.has(name))
  const notices = unknown.length > 0 ? [`${path}: ${unknown.join(', ')} ignored; there is no such setting.`] : []
  return { path, settings, notices: [...notices, ...(await modeNotice(path, settings))] }
}

/** The form of `.mcp.json`, with or without its outer object. Throws a `UsageError`. */
export async function readMcpFile(path: string): Promise<McpInput> {
  const json = await readJson(path, { mayBeMissing: false })
  return parse(McpInput, isBare(json) ? { mcpServers: json } : json, path)
}

async function readJson(path: string, { mayBeMissing }: { mayBeMissing: boolean }): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown
  } catch (cause) {
    const code = codeOf(cause)
    if (code === 'ENOENT' && mayBeMissing) return undefined
    const why = code === undefined ? 'is not valid JSON' : `cannot be read (${code})`
    throw new UsageError(`${path} ${why}.`, { cause })
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

/** A key in a file that others can read is not secret. */
async function modeNotice(path: string, settings: ModelFileSettings): Promise<string[]> {
  if (settings.api_key === undefined || process.platform === 'win32') return []
  const { mode } = await stat(path)
  return (mode & 0o077) === 0 ? [] : [`${path} contains a key and other users can read it; run chmod 600 on it.`]
}
