/** Changes the configuration of an open conversation: checks and stores it in turn, with the work before and after. */
import type { UpdateConfig } from '../contract/conversation.ts'
import { eachHook } from '../contract/hooks/hooks.ts'
import type { DroppedField } from '../contract/values/llm-config.ts'
import type { ReadMcp } from '../mcp/read-config.ts'
import { readMcp } from '../mcp/read-config.ts'
import type { ConversationActor } from './actor.ts'
import { checkBudget, concernsBudget } from './subagents/check-budget.ts'
import type { ConfigChange } from './live/inbox.ts'
import { checkEndpoint } from './config/check-endpoint.ts'
import { checkSettings } from './check-settings.ts'
import type { LlmChange } from './config/llm-origin.ts'
import { changeOf, updateLlm } from './config/llm-origin.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import { changesOf, parseLlmUpdate, shownFields, storedAsSent } from './config/settings.ts'
import { toolWarning } from './config/tool-warning.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ConversationShells } from '../workspace/exec/conversation-shells.ts'
import { credentialsOf, hookWarnings, urlsIn } from './hooks/hook-settings.ts'
import type { ClientMcp } from './mcp.ts'
import type { ConversationNetwork } from '../workspace/network.ts'
import { agentsWarning, checkAgents } from './subagents/check-agents.ts'
import { changesNetworkMode, isWorking } from '../state/intents.ts'
import { refuseRewound } from '../state/refusals.ts'
import type { LiveState } from './live/live-state.ts'
import type { State } from '../state/state.ts'
import { enterAsGuest, leaveAsGuest } from '../workspace/workdirs/guest-workdirs.ts'
import { checkDirectories, prepareWorkdir } from '../workspace/workdirs/workdir.ts'

/** What the response reports about an update. */
export type ConfigureReport = {
  readonly warnings: readonly string[]
  /** Fields that belonged to another origin or model. */
  readonly dropped: readonly DroppedField[]
}

/** The parts of a conversation that depend on its configuration. */
export type ConfiguredParts = {
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly secrets: ConversationSecrets
  readonly network: ConversationNetwork
  readonly shells: ConversationShells
  readonly mcp: Pick<ClientMcp, 'stop' | 'update'>
  readonly redactor: Pick<Redactor, 'redact' | 'redactAnyCase'>
}

/** The new credentials apply from the next model request on. */
export async function configureConversation(
  deps: ConversationDeps,
  parts: ConfiguredParts,
  update: UpdateConfig,
): Promise<ConfigureReport> {
  const llm = update.llm_config ? parseLlmUpdate(update.llm_config) : undefined
  const { redact } = parts.redactor
  await checkSettings(update, { deps, redactor: parts.redactor })
  let drops: ConfigureReport['dropped'] = []
  await parts.actor.configure(async (state) => {
    if (update.after_seq !== undefined) refuseRewound(state, update.after_seq)
    const storedLlm = state.settings.llm_config
    const change = llm && parts.secrets.withoutStoredKey(changeOf(storedLlm, llm.config), storedLlm)
    drops = change?.dropped ?? []
    // Redact the new credentials first: another field may repeat them.
    if (llm) parts.secrets.hideLlm(llm.config)
    const mcp = update.mcp && readMcp(update.mcp, state.settings.mcp)
    if (mcp) parts.secrets.hideMcp(mcp.credentials)
    const additional_directories = update.additional_directories?.join('\n')
    const paths = { workdir: update.workdir, additional_directories }
    const asSent = { ...paths, mcp: mcp?.servers, ...storedAsSent(update), ...shownFields(llm?.config) }
    refuseSecretsIn(asSent, redact)
    if (llm) await checkEndpoint({ ...storedLlm, ...llm.config }, deps.models.endpointRefusal)
    if (concernsBudget(update)) {
      const llm_config = change ? updateLlm(storedLlm, change) : storedLlm
      checkBudget({ ...state.settings, ...update, llm_config }, deps.models, redact)
    }
    const { workdirRules } = deps.workspace
    const workdir =
      update.workdir === undefined ? undefined : await prepareWorkdir(update.workdir, state.id, workdirRules)
    const additionalDirectories = await checkDirectories(update.additional_directories, workdirRules)
    return planOf(deps, parts, state, { update, llm: change, mcp, workdir, additionalDirectories })
  })
  const { settings } = parts.state.current
  const ofTools = llm?.config.model === undefined ? [] : toolWarning(settings.llm_config, settings.tools)
  const ofBudget = concernsBudget(update) ? checkBudget(settings, deps.models, redact) : []
  const ofHooks = hookWarnings([...eachHook(update.hooks ?? {})])
  const ofAgents = agentsWarning(update.agents, settings.tools)
  return { warnings: [...(llm?.warnings ?? []), ...ofTools, ...ofHooks, ...ofBudget, ...ofAgents], dropped: drops }
}

/** Throws a `Problem` for agents that cannot be used with the configuration after the update. */
function agentsOf({ settings }: State, { update, llm, mcp }: CheckedUpdate, redact: Redact) {
  const servers = Object.keys(mcp?.servers ?? settings.mcp ?? {})
  const clientTools = (update.client_tools ?? settings.client_tools ?? []).map(({ name }) => name)
  const against = {
    llm: llm ? updateLlm(settings.llm_config, llm) : settings.llm_config,
    servers,
    clientTools,
    redact,
  }
  return update.agents && checkAgents(update.agents, against)
}

type Redact = (text: string) => string

type CheckedUpdate = {
  readonly update: UpdateConfig
  readonly llm: LlmChange | undefined
  readonly mcp: ReadMcp | undefined
  /** The new workdir. */
  readonly workdir: string | undefined
  readonly additionalDirectories: string[] | undefined
}

function planOf(
  { storage, workspace }: ConversationDeps,
  { secrets, network, shells, mcp, redactor: { redact } }: ConfiguredParts,
  state: State,
  checkedUpdate: CheckedUpdate,
): ConfigChange {
  const { update, llm, mcp: servers, workdir } = checkedUpdate
  const movesShells =
    workdir !== undefined ||
    checkedUpdate.additionalDirectories !== undefined ||
    changesNetworkMode(state, { network: update.network })
  const hooks = update.hooks && credentialsOf(eachHook(update.hooks), (url) => secrets.hookCredentials(url))
  const guests = { storage, workdirBase: workspace.workdirRules.base }
  return {
    changes: changesOf({
      ...checkedUpdate,
      mcp: servers?.servers,
      agents: agentsOf(state, checkedUpdate, redact),
      redact,
    }),
    // Do this before the change is logged: a change that is in the log is in effect.
    before: async () => {
      if (workdir !== undefined) await enterAsGuest(guests, workdir, state.id)
      if (llm) await secrets.updateLlm(llm)
      if (servers) await secrets.addMcp(servers.credentials)
      if (hooks) await secrets.updateHooks({ add: hooks })
    },
    after: async () => {
      if (update.network) network.recheck()
      // The former hooks apply until the change is logged.
      if (update.hooks) await secrets.updateHooks({ keep: urlsIn(update.hooks) })
      if (servers) {
        mcp.update(isWorking(state))
        await secrets.keepMcp(servers.servers, state.settings.mcp)
      }
      // The next command starts in the new directories and network.
      if (movesShells) {
        await mcp.stop()
        await shells.close()
      }
      const former = state.settings.workdir
      if (workdir !== undefined) await leaveAsGuest(guests, former, state.id, workdir)
    },
  }
}
