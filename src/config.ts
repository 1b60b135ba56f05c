/** The only reader of the environment: variables, `.env` and secret files in, one checked `Config` out. */
import { readFileSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { isIP } from 'node:net'
import { homedir, totalmem } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import type { Name, Variable } from './config-variables.ts'
import { VARIABLES } from './config-variables.ts'
import { faultOfHeaderValue } from './contract/http-header.ts'
import { makeDirectories } from './lib/make-directories.ts'
import { withoutUndefined } from './lib/without-undefined.ts'
import type { NetworkPolicy } from './contract/network.ts'
import { findExcess } from './network/policy.ts'
import type { PrivateRule } from './network/private-hosts.ts'
import { parsePrivateRule } from './network/private-hosts.ts'
import { parsePolicySetting } from './network/server-policy.ts'
import { isEndpointRule } from './security/endpoint-rules.ts'
import { isAddressRule } from './security/public-address.ts'
import type { LogLevel } from './telemetry/logger.ts'
import { LOG_LEVELS } from './telemetry/logger.ts'
import type { LimitValues } from './shell/limit-values.ts'

/** Below this a key can be guessed. */
const MIN_KEY_LENGTH = 16

const ISOLATIONS = ['auto', 'bubblewrap', 'none'] as const
type Isolation = (typeof ISOLATIONS)[number]

export type Config = {
  readonly host: string
  readonly port: number
  readonly logLevel: LogLevel
  readonly dataDir: string
  readonly workdirBase: string
  readonly workdirRoots: readonly string[]
  /** What shells in a sandbox see beside the system's files; undefined: all that is not hidden. */
  readonly sandboxReadable: readonly string[] | undefined
  readonly isolation: Isolation
  /** Of each conversation. */
  readonly limits: LimitValues
  /** The first encrypts. */
  readonly masterKeys: readonly [string, ...string[]]
  /** What secrets at rest are encrypted with; the first encrypts, each is tried to decrypt. */
  readonly secretKeys: readonly [string, ...string[]]
  /** Files that secrets are read from: the agent's tools keep away from them. */
  readonly secretFiles: readonly string[]
  /** Exact origins, or `*`. */
  readonly corsOrigins: readonly string[]
  /** Addresses and networks. */
  readonly trustProxy: readonly string[]
  readonly maxConcurrentRuns: number
  readonly idleSeconds: number
  readonly maxStreamsPerConversation: number
  readonly maxFirehoseStreams: number
  readonly maxBodyBytes: number
  readonly maxUploadBytes: number
  readonly maxOutputBytes: number
  readonly streamBufferBytes: number
  readonly logLlmPayloads: boolean
  /** Addresses, CIDR ranges and host names. */
  readonly callbackAllow: readonly string[]
  /** Of conversations that bring no policy, and the most that any may have. */
  readonly network: { readonly default: NetworkPolicy; readonly ceiling: NetworkPolicy }
  /** Addresses that are not public and that the network proxy may connect to. */
  readonly networkPrivateRules: readonly PrivateRule[]
  /** Origins, wildcard hosts and `public`; empty is anywhere. */
  readonly llmAllow: readonly string[]
  /** For conversations that bring none. */
  readonly defaultLlm: { readonly model?: string; readonly api_key?: string; readonly base_url?: string }
  /** The server's own environment, from which the workspace takes what a shell may see. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** A setting that is wrong or missing: one sentence for the operator, no stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** `masterKey` and `overrides` come from the command line; they win over the environment. Throws a `ConfigError`. */
export function readConfig(overrides: Partial<Record<Name, string>> = {}): Config {
  const read = createReader(overrides)
  const dataDir = resolve(read('OPENHANDS_DATA_DIR') ?? defaultDataDir())
  const masterKeys = readMasterKeys(read('OPENHANDS_MASTER_KEY'))
  const secretKey = read('OPENHANDS_SECRET_KEY')
  const defaultLlm = {
    model: read('LLM_MODEL'),
    api_key: readLlmKey(read('LLM_API_KEY')),
    base_url: checked('LLM_BASE_URL', z.url({ protocol: /^https?$/ }).optional(), read),
  }
  return {
    host: checked('OPENHANDS_SERVER_HOST', z.string().min(1), read),
    port: checked('OPENHANDS_SERVER_PORT', z.coerce.number().int().min(0).max(65_535), read),
    logLevel: checked(
      'OPENHANDS_LOG_LEVEL',
      z
        .string()
        .toUpperCase()
        .pipe(z.enum(Object.keys(LOG_LEVELS) as [LogLevel])),
      read,
    ),
    dataDir,
    workdirBase: readWorkdirBase(read('OPENHANDS_WORKDIR_BASE'), dataDir),
    workdirRoots: readPaths('OPENHANDS_WORKDIR_ROOTS', read),
    sandboxReadable: readReadable(read),
    isolation: checked('OPENHANDS_ISOLATION', z.enum(ISOLATIONS), read),
    limits: readLimits(read),
    masterKeys,
    secretKeys: secretKey === undefined ? masterKeys : [secretKey, ...masterKeys],
    secretFiles: [DOT_ENV, ...secretFilePaths()].map((path) => resolve(path)),
    corsOrigins: readOrigins(read('OPENHANDS_CORS_ORIGINS')),
    trustProxy: readProxies(read('OPENHANDS_TRUST_PROXY')),
    maxConcurrentRuns: checked('OPENHANDS_MAX_CONCURRENT_RUNS', z.coerce.number().int().min(1).max(100_000), read),
    idleSeconds: checked('OPENHANDS_IDLE_SECONDS', z.coerce.number().min(0.1).max(31_536_000), read),
    maxStreamsPerConversation: checked(
      'OPENHANDS_MAX_STREAMS_PER_CONVERSATION',
      z.coerce.number().int().min(1).max(100_000),
      read,
    ),
    maxFirehoseStreams: checked('OPENHANDS_MAX_FIREHOSE_STREAMS', z.coerce.number().int().min(1).max(100_000), read),
    maxBodyBytes: checked('OPENHANDS_MAX_BODY_BYTES', z.coerce.number().int().min(1024), read),
    maxUploadBytes: checked('OPENHANDS_MAX_UPLOAD_BYTES', z.coerce.number().int().min(0), read),
    maxOutputBytes: checked('OPENHANDS_MAX_OUTPUT_BYTES', z.coerce.number().int().min(1000).max(10_000_000), read),
    streamBufferBytes: checked('OPENHANDS_STREAM_BUFFER_BYTES', z.coerce.number().int().min(65_536), read),
    logLlmPayloads: checked('OPENHANDS_LOG_LLM_PAYLOADS', z.stringbool(), read),
    callbackAllow: readCallbackAllow(read('OPENHANDS_CALLBACK_ALLOW')),
    network: readNetwork(read),
    networkPrivateRules: readPrivateRules(read('OPENHANDS_NETWORK_PRIVATE_ALLOW')),
    llmAllow: readLlmAllow(read('OPENHANDS_LLM_ALLOW'), defaultLlm.base_url),
    defaultLlm: Object.fromEntries(Object.entries(defaultLlm).filter(([, value]) => value !== undefined)),
    environment: { ...process.env },
  }
}

/** The data directory, where a generated key is looked for before there is a `Config`. */
export function readDataDir(overrides: Partial<Record<Name, string>> = {}): string {
  return resolve(createReader(overrides)('OPENHANDS_DATA_DIR') ?? defaultDataDir())
}

export const hasMasterKey = (): boolean => createReader({})('OPENHANDS_MASTER_KEY') !== undefined

/** Makes the directory and proves that it can be written to. */
export async function ensureWritable(path: string, name: Name): Promise<void> {
  try {
    await makeDirectories(path, 0o700)
    await access(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new ConfigError(`${path} cannot be written to (${code}); set ${name} to a directory that can.`, {
      cause: error,
    })
  }
}

const DOT_ENV = '.env'

type Read = (name: Name) => string | undefined

/** Command line, then environment, then `.env`, then default; an empty value counts as not set. */
function createReader(overrides: Partial<Record<Name, string>>): Read {
  const given = Object.entries(process.env).filter(([, value]) => value)
  const env: Record<string, string | undefined> = { ...readDotEnv(), ...Object.fromEntries(given) }
  return (name) => {
    const variable: Variable = VARIABLES[name]
    const direct = overrides[name] ?? env[name]
    const file = variable.secret ? env[`${name}_FILE`] : undefined
    if (direct && file && overrides[name] === undefined) throw new ConfigError(`Set ${name} or ${name}_FILE, not both.`)
    return direct || (file && readSecretFile(name, file)) || variable.default
  }
}

function readDotEnv(): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(DOT_ENV, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code !== 'ENOENT') {
      throw new ConfigError(`.env cannot be read (${String(error.code)}).`, { cause: error })
    }
    return {}
  }
}

function secretFilePaths(): string[] {
  const env = { ...readDotEnv(), ...process.env }
  const variables: [string, Variable][] = Object.entries(VARIABLES)
  return variables.flatMap(([name, { secret }]) => (secret && env[`${name}_FILE`]) || [])
}

function readSecretFile(name: Name, path: string): string {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    if (secret) return secret
  } catch (error) {
    throw new ConfigError(
      `${name}_FILE: ${path} cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : 'error'}).`,
      {
        cause: error,
      },
    )
  }
  throw new ConfigError(`${name}_FILE: ${path} is empty.`)
}

/** The message names the variable and never the value: it may be a secret pasted into the wrong place. */
function checked<T>(name: Name, schema: z.ZodType<T>, read: Read): T {
  const parsed = schema.safeParse(read(name))
  if (parsed.success) return parsed.data
  throw new ConfigError(`${name} is not valid: ${parsed.error.issues.map((issue) => issue.message).join('; ')}.`)
}

function readMasterKeys(value: string | undefined): [string, ...string[]] {
  const keys = (value ?? '').split(',').map((key) => key.trim())
  if (!value) {
    throw new ConfigError(
      'OPENHANDS_MASTER_KEY is not set. Make a key with `openssl rand -hex 32` and export it, or start with --generate-key to have one made and kept.',
    )
  }
  if (keys.some((key) => key.length < MIN_KEY_LENGTH)) {
    throw new ConfigError(
      `OPENHANDS_MASTER_KEY must have at least ${MIN_KEY_LENGTH} characters; make one with \`openssl rand -hex 32\`.`,
    )
  }
  // Anything else cannot be sent in a header as it is, and would be refused forever.
  if (keys.some((key) => !/^[\x21-\x7e]+$/.test(key)))
    throw new ConfigError('OPENHANDS_MASTER_KEY may hold visible ASCII characters only.')
  return [keys[0]!, ...keys.slice(1)]
}

/** The value that switches a limit off. */
const UNLIMITED = 'none'
/** A shell does not start with less. */
const MIN_LIMITS = { bytes: 32 * 1024 ** 2, processes: 16, cpus: 0.05 }

function readLimits(read: Read): LimitValues {
  return withoutUndefined({
    memoryBytes: readLimit('OPENHANDS_LIMIT_MEMORY', read, parseMemory, MIN_LIMITS.bytes),
    processes: readLimit('OPENHANDS_LIMIT_PROCESSES', read, parseCount, MIN_LIMITS.processes),
    cpus: readLimit('OPENHANDS_LIMIT_CPU', read, Number, MIN_LIMITS.cpus),
    diskBytes: readLimit('OPENHANDS_LIMIT_DISK', read, parseBytes, MIN_LIMITS.bytes),
  })
}

function readLimit(name: Name, read: Read, parse: (text: string) => number, least: number): number | undefined {
  const text = (read(name) ?? UNLIMITED).trim()
  if (text === UNLIMITED) return undefined
  const limit = parse(text)
  if (limit >= least && Number.isFinite(limit)) return limit
  throw new ConfigError(`${name} is not valid: give a number of at least ${least}, or none.`)
}

/** Of what the machine has, or the container. */
function parseMemory(text: string): number {
  const percent = /^(\d{1,2}|100)%$/.exec(text)?.[1]
  if (percent === undefined) return parseBytes(text)
  const constrained = process.constrainedMemory() || Infinity
  return Math.floor((Math.min(totalmem(), constrained) * Number(percent)) / 100)
}

function parseBytes(text: string): number {
  const [, digits, unit = ''] = /^(\d+)([KMGT]?)(?:i?B)?$/i.exec(text) ?? []
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(unit.toUpperCase())
  return digits === undefined ? NaN : Number(digits) * 1024 ** power
}

const parseCount = (text: string) => (/^\d+$/.test(text) ? Number(text) : NaN)

function readWorkdirBase(value: string | undefined, dataDir: string): string {
  const base = resolve(value ?? join(dataDir, 'work'))
  // No workdir lies among the server's own files, so there would be none at all.
  if (base === dataDir)
    throw new ConfigError('OPENHANDS_WORKDIR_BASE must be another directory than OPENHANDS_DATA_DIR.')
  return base
}

function readPaths(name: Name, read: Read): string[] {
  const paths = (read(name) ?? '').split(':').filter(Boolean)
  const relative = paths.find((path) => !isAbsolute(path))
  if (relative) throw new ConfigError(`${name}: ${relative} is not an absolute path.`)
  return paths.map((path) => resolve(path))
}

function readReadable(read: Read): string[] | undefined {
  const paths = readPaths('OPENHANDS_SANDBOX_READABLE', read)
  if (paths.includes('/'))
    throw new ConfigError('OPENHANDS_SANDBOX_READABLE cannot be /; without a value all is readable that is not hidden.')
  return paths.length > 0 ? paths : undefined
}

/** As browsers send them: scheme, host and port, and nothing behind. Another form would never match. */
function readOrigins(value: string | undefined): string[] {
  const origins = listOf(value)
  const wrong = origins.find((origin) => origin !== '*' && !isOrigin(origin))
  if (wrong === undefined) return origins
  throw new ConfigError('OPENHANDS_CORS_ORIGINS takes origins such as https://app.example.com, or *.')
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text
}

/** Neither all proxies nor a number of hops: a client that reaches the server directly could then claim any address. */
function readProxies(value: string | undefined): string[] {
  const proxies = listOf(value)
  if (proxies.every(isNetwork)) return proxies
  throw new ConfigError('OPENHANDS_TRUST_PROXY takes addresses and networks, such as 127.0.0.1,10.0.0.0/8.')
}

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128))
}

function listOf(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
}

function readCallbackAllow(value: string | undefined): string[] {
  const allowed = listOf(value)
  const wrong = allowed.find((entry) => !isAddressRule(entry))
  if (wrong === undefined) return allowed
  throw new ConfigError(`OPENHANDS_CALLBACK_ALLOW: ${wrong} is not an address, CIDR range or host name.`)
}

function readNetwork(read: Read): Config['network'] {
  const ceiling = readPolicy('OPENHANDS_NETWORK_CEILING', read) ?? { mode: 'open' }
  const policy = readPolicy('OPENHANDS_NETWORK', read) ?? ceiling
  const excess = findExcess(policy, ceiling)
  if (excess === undefined) return { default: policy, ceiling }
  throw new ConfigError(`OPENHANDS_NETWORK is more than OPENHANDS_NETWORK_CEILING: ${excess}.`)
}

function readPolicy(name: Name, read: Read): NetworkPolicy | undefined {
  const text = read(name)
  const policy = text === undefined ? undefined : parsePolicySetting(text)
  if (policy && 'wrong' in policy) throw new ConfigError(`${name} is not valid: ${policy.wrong}.`)
  return policy
}

function readPrivateRules(value: string | undefined): PrivateRule[] {
  return listOf(value).map((entry) => {
    const rule = parsePrivateRule(entry)
    if ('wrong' in rule) throw new ConfigError(`OPENHANDS_NETWORK_PRIVATE_ALLOW: ${rule.wrong}.`)
    return rule
  })
}

/** The server's own endpoint need not be named again. */
function readLlmAllow(value: string | undefined, ownUrl: string | undefined): string[] {
  const allowed = listOf(value)
  if (!allowed.every(isEndpointRule)) {
    throw new ConfigError(
      'OPENHANDS_LLM_ALLOW takes origins such as https://api.example.com, wildcard hosts such as *.example.com, and public.',
    )
  }
  return allowed.length > 0 && ownUrl !== undefined ? [...allowed, new URL(ownUrl).origin] : allowed
}

/** It is sent in a header. */
function readLlmKey(key: string | undefined): string | undefined {
  if (key === undefined || faultOfHeaderValue(key) === undefined) return key
  throw new ConfigError('LLM_API_KEY holds a character that cannot be sent in an HTTP header.')
}

function defaultDataDir(): string {
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'agent-server')
  return join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'agent-server')
}

/** How the terminal wants its text: NO_COLOR (no-color.org) and pipes get none. */
export const wantsColor = (): boolean => process.stdout.isTTY && !process.env.NO_COLOR
