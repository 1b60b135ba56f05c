/** Collects what a conversation gets: options, environment, settings file, and what a person is asked for. */
import { realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { faultOfHeaderValue } from '../../contract/values/http-header.ts'
import { ownVendorKeys } from '../../config/model-keys.ts'
import type { ServerSettings } from '../../config/variables.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { ChatSettings } from './chat-settings.ts'
import type { ConversationSettings } from './conversation-settings.ts'
import type { ChosenModel, ChooseModel } from './choose-model.ts'
import { keepsIts, readGivenSettings } from './given-settings.ts'
import { requireRules } from './refused-settings.ts'
import { secretFilePaths } from '../../config/environment.ts'
import { secretPathOf } from '../../config/piped-secrets.ts'
import { leaveProject } from '../../config/leave-project.ts'
import type { HomeSettings } from './home-settings.ts'
import { NO_HOME, readHomeSettings } from './home-settings.ts'
import { promptUser } from './prompt-user.ts'
import type { ModelSettings, ModelSource } from './model-settings.ts'
import { combineModelSettings, fromEnvironment, fromFile, fromOptions, fromPerson } from './model-settings.ts'
import type { PersonalInstructions } from './personal-instructions.ts'
import { readPersonalInstructions } from './personal-instructions.ts'
import type { GivenNames } from './setting-names.ts'
import type { ModelFileSettings, SettingsFile } from './settings-file.ts'
import { holdsSecrets, readMcpFile, readSettingsFile } from './settings-file.ts'

export type RunSettings = {
  readonly conversation: ConversationSettings
  readonly dataDir: string
  /** The settings for the server of this process, by the names of its variables. */
  readonly serverSettings: ServerSettings
  /** Prints the key for the endpoint of the model. */
  readonly keyCommand: readonly string[] | undefined
  /** The key of the remote server. */
  readonly serverKey: string | undefined
  /** Files with keys, to hide from agents of this machine. */
  readonly secretFiles: readonly string[]
  /** The settings for agents of this machine. */
  readonly home: HomeSettings
  readonly names: GivenNames
  readonly chat: ChatSettings
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

const NO_INSTRUCTIONS: PersonalInstructions = { texts: [], notices: [] }
const NO_FILE: SettingsFile = { path: '', settings: {}, notices: [] }

/**
 * Leaves the current directory. Throws a `UsageError` if something is missing. `chooseModel`: how a person is asked for a model
 * and a key that are not set.
 */
export async function readRunSettings(
  invocation: RunInvocation,
  signal: AbortSignal,
  chooseModel?: ChooseModel,
): Promise<RunSettings> {
  const { server, settings: path, mcpConfig, resume } = invocation
  const isRemote = server !== undefined
  // The default file and the environment hold keys that a remote server must not get unasked.
  const file = isRemote && path === undefined ? NO_FILE : await readSettingsFile(path, signal)
  const mcp = mcpConfig === undefined ? undefined : await readMcpFile(mcpConfig, signal)
  requireRules('allowed-tools', invocation.allowedTools)
  requireRules('disallowed-tools', invocation.disallowedTools)
  const isResumed = resume !== undefined
  const givenSettings = await readGivenSettings(invocation.settingTexts, { isResumed, signal })
  if (isResumed) refuseFixed(invocation)
  const cwd = await workdirOf(invocation)
  const addDirs = isRemote ? invocation.addDirs : await Promise.all(invocation.addDirs.map(existingDirectory))
  const settingsPath = file.path === '' ? '' : absolute(file.path)
  const dataDir = await leaveProject({ createsIt: !isRemote, signal })
  const workdirs = [...(cwd === undefined ? [] : [cwd]), ...addDirs]
  const hiddenWith = (keyFile: string | undefined) => [
    dataDir,
    ...(keyFile === undefined ? [] : [keyFile]),
    ...secretFilePaths(),
  ]
  const homeWithout = async (hiddenPaths: readonly string[]) =>
    isRemote ? NO_HOME : await readHomeSettings(invocation, file.settings.sandbox, { hidden: hiddenPaths, workdirs })
  const keyFileBefore = holdsSecrets(file.settings) ? secretPathOf(settingsPath) : undefined
  // Nobody is asked for a model before the options are known to be usable.
  const homeBefore = await homeWithout(hiddenWith(keyFileBefore))
  const chosenModel = await modelOf(invocation, { ...file, path: settingsPath }, chooseModel)
  const { llm, names, keyCommand, keepsKey } = chosenModel
  const keyFile = keepsKey ? secretPathOf(settingsPath) : keyFileBefore
  const hiddenPaths = hiddenWith(keyFile)
  const home = keepsKey ? await homeWithout(hiddenPaths) : homeBefore
  const instructions = isRemote ? NO_INSTRUCTIONS : await readPersonalInstructions(hiddenPaths, signal)
  return {
    conversation: {
      ...conversationOf(invocation, llm, file.settings),
      cwd,
      addDirs,
      mcp: mergeServers(file.settings.mcp, mcp),
      tools: file.settings.tools,
      // Commands of the person are for this machine.
      hooks: isRemote ? undefined : file.settings.hooks,
      instructions: instructions.texts,
      givenSettings,
    },
    dataDir,
    serverSettings: keyCommand === undefined || isRemote ? {} : settingsOf(keyCommand, llm),
    keyCommand,
    serverKey: isRemote ? await serverKeyOf(invocation) : undefined,
    names: { ...(isRemote && OF_SERVER), ...names, ...mcpName(invocation, file) },
    chat: file.settings.chat ?? {},
    secretFiles: keyFile === undefined ? [] : [keyFile],
    home,
    notices: [
      ...file.notices,
      ...chosenModel.notices,
      ...instructions.notices,
      ...(isRemote ? [] : visibleKeys(keyFile, cwd)),
    ],
  }
}

/** Throws a `UsageError` for an option that only a new conversation can have. */
function refuseFixed({ mcpConfig, systemPrompt, appendSystemPrompt }: RunInvocation): void {
  const fixedOptions = {
    'mcp-config': mcpConfig,
    'system-prompt': systemPrompt,
    'append-system-prompt': appendSystemPrompt,
  }
  for (const [option, value] of Object.entries(fixedOptions)) if (value !== undefined) throw keepsIts(option)
}

/**
 * Returns a sentence about each file with a key that no sandbox can hide: one below a directory in the directory of the
 * agent, which the agent can move. Call it after `leaveProject`.
 */
function visibleKeys(settingsFile: string | undefined, cwd: string | undefined): string[] {
  const directory = cwd && secretPathOf(cwd)
  const files = [settingsFile, ...secretFilePaths().map(secretPathOf)].filter((file) => file !== undefined)
  return files
    .filter((file) => dirname(file).startsWith(`${directory}/`))
    .map(
      (file) => `${file} contains a key, and the agent can read it there; move it out of the directory of the agent.`,
    )
}

/** The server would create a directory that does not exist, also one whose name is misspelt. */
async function workdirOf({ server, cwd }: RunInvocation): Promise<string | undefined> {
  return server === undefined ? await existingDirectory(cwd ?? '.') : cwd
}

async function existingDirectory(givenPath: string): Promise<string> {
  const path = absolute(givenPath)
  const stats = await stat(path).catch(() => undefined)
  if (!stats?.isDirectory()) throw new UsageError(`${path} is not a directory.`)
  return await realpath(path)
}

function absolute(path: string): string {
  try {
    return resolve(path)
  } catch (cause) {
    throw new UsageError('the current directory was removed; go to another one, or give --cwd.', { cause })
  }
}

function conversationOf(invocation: RunInvocation, llm: ModelSettings['llm'], { model, base_url }: ModelFileSettings) {
  const { resume, cwd, server } = invocation
  const isRemote = server !== undefined
  const givenLlm = modelOptions(invocation).values
  // A settings file is read for a remote server only if it is named.
  const fromFile = isRemote ? withoutUndefined({ model, base_url }) : {}
  const overridesRuns = invocation.isHeadless && resume !== undefined
  const common = { ...invocation, hasCwd: cwd !== undefined, overridesRuns }
  return { ...common, llm, givenLlm: { ...fromFile, ...givenLlm }, loadsProject: !isRemote || cwd !== undefined }
}

/** Leaves out the key if there is a server, whose key it is. */
const modelOptions = (invocation: RunInvocation): ModelSource =>
  fromOptions(invocation.server === undefined ? invocation : { ...invocation, apiKey: undefined })

type Model = Pick<ModelSettings, 'llm' | 'names' | 'keyCommand'> & Pick<ChosenModel, 'keepsKey' | 'notices'>

async function modelOf(invocation: RunInvocation, file: SettingsFile, chooseModel?: ChooseModel): Promise<Model> {
  const isRemote = invocation.server !== undefined
  const options = modelOptions(invocation)
  const keys = isRemote ? undefined : ownVendorKeys()
  const sources = [options, ...(isRemote ? [] : [fromEnvironment()]), fromFile(file)]
  requireUrl(sources.find(({ values }) => values.base_url !== undefined))
  const foundSettings = combineModelSettings(sources, file.path, keys)
  const { llm, names, missing, keyCommand } = foundSettings
  if (missing === undefined || isRemote || invocation.resume !== undefined)
    return { ...foundSettings, keepsKey: false, notices: [] }
  if (missing.field === 'endpoint') throw new UsageError(missing.message)
  // A person with a program that prints a key knows the model that it is for.
  const chosenModel = keyCommand
    ? undefined
    : await chooseModel?.({ llm, nameOfKey: names['llm_config.api_key'], file })
  if (chosenModel === undefined)
    throw new UsageError(chooseModel ? missing.message : `${missing.message} Without -p, the chat asks for it.`)
  const { values, ...choice } = chosenModel
  return { ...combineModelSettings([fromPerson(values), ...sources], file.path, keys), ...choice }
}

/** The server runs the command, because keys expire while it runs, and sends what is printed to this endpoint only. */
function settingsOf(keyCommand: readonly string[], { model, base_url, provider }: LlmConfig): ServerSettings {
  return withoutUndefined({
    LLM_API_KEY_COMMAND: JSON.stringify(keyCommand),
    LLM_MODEL: model,
    LLM_BASE_URL: base_url,
    LLM_PROVIDER: provider,
  })
}

/** The value is not repeated: it may be a key in the wrong place. */
function requireUrl(source: ModelSource | undefined): void {
  const endpoint = source?.values.base_url
  if (!endpoint || /^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) return
  throw new UsageError(`${source.nameOf('base_url')} is not an http or https URL, such as https://api.example.com/v1.`)
}

async function serverKeyOf({ apiKey, server, isHeadless }: RunInvocation): Promise<string> {
  const key = (await givenServerKey(apiKey)) ?? (isHeadless ? undefined : await promptForKey(server))
  if (key !== undefined) return usableKey(key, 'what you have entered')
  throw new UsageError(`no key is set for ${server}: set OPENHANDS_MASTER_KEY, or give --api-key.`)
}

const promptForKey = (server: string | undefined) => promptUser(`Key of ${server}: `, { isSecret: true })

/**
 * Returns the key of the option, or of the environment: of several keys the first. Throws a `UsageError` if it cannot
 * be sent.
 */
export async function givenServerKey(option: string | undefined): Promise<string | undefined> {
  if (option !== undefined) return usableKey(option, '--api-key')
  const { createReader } = await import('../../config/environment.ts')
  const key = createReader({})('OPENHANDS_MASTER_KEY')?.split(',')[0]?.trim()
  return key === undefined ? undefined : usableKey(key, 'OPENHANDS_MASTER_KEY')
}

function usableKey(key: string, name: string): string {
  if (faultOfHeaderValue(key) === undefined) return key
  throw new UsageError(`${name} has a character that no HTTP header can have.`)
}

/** A remote server has its own key. */
const OF_SERVER = { 'llm_config.api_key': 'the key that the server has for the model' }

function mcpName({ mcpConfig }: RunInvocation, { path, settings }: SettingsFile): GivenNames {
  const names = [mcpConfig && `--mcp-config ${mcpConfig}`, settings.mcp && `mcp of ${path}`].filter(Boolean)
  return names.length > 0 ? { mcp: names.join(' and ') } : {}
}

/** Servers of the option replace those of the same name. */
function mergeServers(file: McpInput | undefined, option: McpInput | undefined): McpInput | undefined {
  if (!file || !option) return option ?? file
  return {
    ...file,
    ...option,
    mcpServers: { ...file.mcpServers, ...option.mcpServers },
  }
}
