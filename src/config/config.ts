/** The whole configuration: settings in, one checked `Config` out. */
import { access, constants } from 'node:fs/promises'
import { resolve } from 'node:path'
import { z } from 'zod'
import type { Name } from './variables.ts'
import { LLM_PROVIDERS } from '../contract/values/llm-config.ts'
import type { LlmDefaults } from '../conversations/config/llm-origin.ts'
import { VendorKeys } from '../llm/endpoints/vendor-keys.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { hiddenFilesIn } from '../access/hidden-files.ts'
import { makeDirectories } from '../files/make-directories.ts'
import type { PrivateRule } from '../network/private-hosts.ts'
import { PROTOCOL_NAMES } from '../protocols/protocol-routes.ts'
import { HostEnvironment } from '../lib/start-process.ts'
import type { LogLevel } from '../telemetry/log-levels.ts'
import { LOG_LEVELS } from '../telemetry/log-levels.ts'
import type { LimitValues } from '../shell/limit-values.ts'
import type { Address } from './address.ts'
import { readAddress } from './address.ts'
import type { ClusterAddress } from './cluster-address.ts'
import { keyFilesOf, readCluster } from './cluster-address.ts'
import type { ReadVariable } from './environment.ts'
import {
  ConfigError,
  checkVariable,
  createReader,
  DOT_ENV,
  environmentWithDotEnv,
  secretFilePaths,
} from './environment.ts'
import { createKeyCommand, readKeyCommand, withoutKeys, withVendorKey } from './model-keys.ts'
import { readDatabaseUrl, readLlmKey, readLlmUrl, readMasterKeys, readSecretKeys, readWebSearch } from './keys.ts'
import { readLimits } from './limits.ts'
import type { NetworkSettings } from './network.ts'
import {
  readAddresses,
  readLlmAllow,
  readNetwork,
  readOrigins,
  readPrivateRules,
  readProxies,
  readPublicUrl,
} from './network.ts'
import {
  dataDirOf,
  readPath,
  readPaths,
  readReadable,
  readSharedDir,
  readWorkdirBase,
  settingsFileIfAny,
} from './paths.ts'

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const LOG_LEVEL_NAMES = Object.keys(LOG_LEVELS) as LogLevel[]

const LOG_FORMATS = ['auto', 'json', 'pretty'] as const
/** Lines for programs, or for a person. */
export type LogFormat = 'json' | 'pretty'

const ISOLATIONS = ['auto', 'bubblewrap', 'none'] as const
type Isolation = (typeof ISOLATIONS)[number]

const ProtocolList = z
  .string()
  .transform((list) => (list === 'none' ? [] : list.split(',').map((name) => name.trim())))
  .pipe(z.array(z.enum(PROTOCOL_NAMES)))

export type Config = Address & {
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
  readonly dataDir: string
  /** Undefined: conversations are kept in files of the data directory. */
  readonly databaseUrl: string | undefined
  readonly databaseSessionUrl: string | undefined
  readonly databaseOutageSeconds: number
  /** The address at which other instances of the same database reach this one; undefined: this one uses it alone. */
  readonly cluster: ClusterAddress | undefined
  readonly drainSeconds: number
  /** Has what all instances of a database need of the files of conversations; undefined: the data directory has it. */
  readonly sharedDir: string | undefined
  readonly workdirBase: string
  readonly workdirRoots: readonly string[]
  /** Settings for conversations that ask for the source `user`; undefined: there are none. */
  readonly userSettingsDir: string | undefined
  /** What sandboxed shells see in addition to system files; undefined: everything that is not hidden. */
  readonly sandboxReadable: readonly string[] | undefined
  readonly isolation: Isolation
  /** Limits of each conversation. */
  readonly limits: LimitValues
  /** The first encrypts. */
  readonly masterKeys: readonly [string, ...string[]]
  /** Keys for stored secrets; the first encrypts, each is tried to decrypt. */
  readonly secretKeys: readonly [string, ...string[]]
  /** Files that secrets are read from: hidden from the agent's tools. */
  readonly secretFiles: readonly string[]
  /** Returns the files that programs of the same user have added. */
  readonly hiddenFiles: () => readonly string[]
  /** Exact origins, or `*`. */
  readonly corsOrigins: readonly string[]
  /** Addresses and networks. */
  readonly trustProxy: readonly string[]
  readonly isSearchOn: boolean
  /** The protocols that clients may speak besides the API. */
  readonly protocols: readonly string[]
  /** The models that clients of OpenAI may name instead of profiles. */
  readonly plainModels: LlmDefaults | undefined
  readonly isInsecureLoginAllowed: boolean
  readonly maxConcurrentRuns: number
  readonly idleSeconds: number
  readonly snapshotDays: number
  readonly snapshotBytes: number
  readonly maxStreamsPerConversation: number
  readonly maxFirehoseStreams: number
  readonly maxBodyBytes: number
  readonly maxUploadBytes: number
  readonly maxOutputBytes: number
  readonly streamBufferBytes: number
  readonly logLlmPayloads: boolean
  /** Addresses, CIDR ranges and host names. */
  readonly callbackAllow: readonly string[]
  /** The URL at which browsers reach this server, without a slash at the end. */
  readonly publicUrl: string | undefined
  /** The same for MCP servers. */
  readonly mcpAllow: readonly string[]
  /** The default policy of conversations, and the maximum for any of them. */
  readonly network: NetworkSettings
  /** Private addresses that the network proxy may connect to. */
  readonly networkPrivateRules: readonly PrivateRule[]
  /** Origins, wildcard hosts and `public`; empty allows any. */
  readonly llmAllow: readonly string[]
  /** The file with what the operator knows about models. */
  readonly modelCatalog: string | undefined
  /** The model of conversations without one. */
  readonly defaultLlm: LlmDefaults
  /** The keys of vendors in the environment. A server for others uses the one of its model only. */
  readonly vendorKeys: VendorKeys
  /** Undefined: there is no search engine. */
  readonly webSearch: { readonly apiKey: string; readonly baseUrl: string | undefined } | undefined
  /** The server's own environment, from which shells get the allowed variables. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** `overrides` come from the command line and take precedence over the environment. Throws a `ConfigError`. */
export function readConfig(overrides: Partial<Record<Name, string>> = {}): Config {
  const read = createReader(overrides)
  const dataDir = dataDirOf(read)
  const sharedDir = readSharedDir(read, dataDir)
  const masterKeys = readMasterKeys(read('OPENHANDS_MASTER_KEY'))
  const vendorKeys = new VendorKeys(environmentWithDotEnv())
  const defaultLlm = readDefaultLlm(read, vendorKeys)
  const cluster = readCluster(read)
  return {
    ...readAddress(read),
    logLevel: checkVariable('OPENHANDS_LOG_LEVEL', z.string().toUpperCase().pipe(z.enum(LOG_LEVEL_NAMES)), read),
    logFormat: readLogFormat(read),
    dataDir,
    databaseUrl: readDatabaseUrl('OPENHANDS_DATABASE_URL', read),
    databaseSessionUrl: readDatabaseUrl('OPENHANDS_DATABASE_SESSION_URL', read),
    cluster,
    drainSeconds: checkVariable('OPENHANDS_DRAIN_SECONDS', seconds(0, 3600), read),
    databaseOutageSeconds: checkVariable('OPENHANDS_DATABASE_OUTAGE_SECONDS', seconds(0.1, 3600), read),
    sharedDir,
    workdirBase: readWorkdirBase(read, dataDir, sharedDir),
    workdirRoots: readPaths('OPENHANDS_WORKDIR_ROOTS', read),
    userSettingsDir: readPath('OPENHANDS_USER_SETTINGS_DIR', read),
    sandboxReadable: readReadable(read),
    isolation: checkVariable('OPENHANDS_ISOLATION', z.enum(ISOLATIONS), read),
    limits: readLimits(read),
    masterKeys,
    secretKeys: readSecretKeys(read('OPENHANDS_SECRET_KEY'), masterKeys),
    secretFiles: [DOT_ENV, ...secretFilePaths(), ...keyFilesOf(cluster), ...settingsFileIfAny()].map((path) =>
      resolve(path),
    ),
    hiddenFiles: hiddenFilesIn(dataDir),
    publicUrl: readPublicUrl(read('OPENHANDS_PUBLIC_URL')),
    corsOrigins: readOrigins(read('OPENHANDS_CORS_ORIGINS')),
    trustProxy: readProxies(read('OPENHANDS_TRUST_PROXY')),
    isSearchOn: checkVariable('OPENHANDS_SEARCH', z.stringbool(), read),
    protocols: checkVariable('OPENHANDS_PROTOCOLS', ProtocolList, read),
    plainModels: checkVariable('OPENHANDS_ALLOW_PLAIN_MODELS', z.stringbool(), read) ? defaultLlm : undefined,
    isInsecureLoginAllowed: checkVariable('OPENHANDS_INSECURE_LOGIN', z.stringbool(), read),
    maxConcurrentRuns: checkVariable('OPENHANDS_MAX_CONCURRENT_RUNS', wholeNumber(1, 100_000), read),
    snapshotDays: checkVariable('OPENHANDS_SNAPSHOT_DAYS', wholeNumber(1, 36_500), read),
    snapshotBytes: checkVariable('OPENHANDS_SNAPSHOT_BYTES', wholeNumber(1024 ** 2), read),
    idleSeconds: checkVariable('OPENHANDS_IDLE_SECONDS', seconds(0.1, 31_536_000), read),
    maxStreamsPerConversation: checkVariable('OPENHANDS_MAX_STREAMS_PER_CONVERSATION', wholeNumber(1, 100_000), read),
    maxFirehoseStreams: checkVariable('OPENHANDS_MAX_FIREHOSE_STREAMS', wholeNumber(1, 100_000), read),
    maxBodyBytes: checkVariable('OPENHANDS_MAX_BODY_BYTES', wholeNumber(1024), read),
    maxUploadBytes: checkVariable('OPENHANDS_MAX_UPLOAD_BYTES', wholeNumber(0), read),
    maxOutputBytes: checkVariable('OPENHANDS_MAX_OUTPUT_BYTES', wholeNumber(1000, 10_000_000), read),
    streamBufferBytes: checkVariable('OPENHANDS_STREAM_BUFFER_BYTES', wholeNumber(65_536), read),
    logLlmPayloads: checkVariable('OPENHANDS_LOG_LLM_PAYLOADS', z.stringbool(), read),
    callbackAllow: readAddresses('OPENHANDS_CALLBACK_ALLOW', read),
    mcpAllow: readAddresses('OPENHANDS_MCP_ALLOW', read),
    network: readNetwork(read),
    networkPrivateRules: readPrivateRules(read('OPENHANDS_NETWORK_PRIVATE_ALLOW')),
    llmAllow: readLlmAllow(read('OPENHANDS_LLM_ALLOW'), defaultLlm.base_url),
    modelCatalog: readPath('OPENHANDS_MODEL_CATALOG', read),
    defaultLlm,
    vendorKeys,
    webSearch: readWebSearch(read),
    environment: { ...process.env },
  }
}

function readDefaultLlm(read: ReadVariable, vendorKeys: VendorKeys): LlmDefaults {
  const givenDefaults = withoutUndefined({
    model: read('LLM_MODEL'),
    api_key: readLlmKey(read('LLM_API_KEY')),
    base_url: readLlmUrl(read),
    provider: checkVariable('LLM_PROVIDER', z.enum(LLM_PROVIDERS).optional(), read),
  })
  const argv = readKeyCommand(read)
  return argv ? { ...givenDefaults, keyCommand: createKeyCommand(argv) } : withVendorKey(givenDefaults, vendorKeys)
}

/** Resolves `auto`: a terminal has a reader, any other output most likely goes to a program. */
function readLogFormat(read: ReadVariable): LogFormat {
  const format = checkVariable('OPENHANDS_LOG_FORMAT', z.enum(LOG_FORMATS), read)
  if (format !== 'auto') return format
  return process.stdout.isTTY ? 'pretty' : 'json'
}

/** Returns the schema of a number in digits; its error message says what is accepted. */
function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  const error =
    most === Number.MAX_SAFE_INTEGER
      ? `give a whole number of at least ${least}`
      : `give a whole number from ${least} to ${most}`
  return z.coerce.number({ error }).refine((n) => Number.isInteger(n) && n >= least && n <= most, { error })
}

function seconds(least: number, most: number) {
  const error = `give a number of seconds from ${least} to ${most}`
  return z.coerce.number({ error }).min(least, { error }).max(most, { error })
}

/** Creates the directory and checks that it is writable. */
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

/** False for a terminal that only prints lines, such as a shell in Emacs. */
export const canMoveCursor = (): boolean => process.env.TERM !== 'dumb'

/** The editor of the person, as a command for the shell, and its environment. */
export const personalEditor = () => ({
  command: process.env.VISUAL || process.env.EDITOR || 'vi',
  env: HostEnvironment.ofPerson(withoutKeys(process.env)),
})

/** True if the output should be coloured: not with NO_COLOR (no-color.org), nor into a pipe. */
export const wantsColor = (output: { readonly isTTY?: boolean } = process.stdout): boolean =>
  output.isTTY === true && !process.env.NO_COLOR && canMoveCursor()
