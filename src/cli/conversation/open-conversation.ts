/** Creates the conversation of a command, or finds the one to resume and applies what the command line changes in it. */
import type { AgentServerClient } from '../../client/client.ts'
import type { BodyOf } from '../../client/operations/operations.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import { findGit } from '../../workspace/git/run-git.ts'
import { removeLeftHooks } from '../../sdk/hooks/left-hooks.ts'
import { requireGivenMode } from './refuse-resume.ts'
import type { ConversationSettings } from '../settings/conversation-settings.ts'
import { changesOfResumed, newConversation } from '../settings/conversation-settings.ts'
import { findConversation, latestConversation } from './find-conversation.ts'
import type { GivenNames } from '../settings/setting-names.ts'
import { SettingNames } from '../settings/setting-names.ts'
import { namingSettings } from '../settings/refused-settings.ts'

export type OpenedConversation = {
  readonly view: ConversationView
  readonly isResumed: boolean
  readonly names: GivenNames
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

/** Checks that run before anything is changed. They may throw. */
export type BeforeOpening = {
  /** There is no conversation to resume. */
  readonly onNone?: () => Promise<void>
  readonly onResume?: (found: ConversationView, conversation: ConversationHandle) => Promise<void>
}

export async function openConversation(
  client: AgentServerClient,
  settings: ConversationSettings,
  givenNames: GivenNames,
  { onNone, onResume, signal }: BeforeOpening & { readonly signal: AbortSignal },
): Promise<OpenedConversation> {
  const foundView = await wantedConversation(client, settings, signal)
  if (foundView) {
    requireGivenMode(foundView, settings.permissionMode)
    await onResume?.(foundView, client.conversation(foundView.id))
    const names = new SettingNames(namesOfResumed(givenNames, settings))
    const view = settings.forks ? await namingSettings(names, fork(client, foundView, settings, signal)) : foundView
    const resuming = namingSettings(names, resume(client, view, settings, signal))
    const { notices, ...resumption } = await resuming.catch(async (error: unknown) => {
      if (settings.forks) await client.conversation(view.id).delete()
      throw error
    })
    const forkNotices = settings.forks ? [`it is a copy of conversation ${foundView.id}.`] : []
    return {
      ...resumption,
      notices: [...forkNotices, ...notices],
      isResumed: true,
      names: namesOfResumed(givenNames, settings),
    }
  }
  if (settings.resume !== undefined) await onNone?.()
  const { sessionId } = settings
  const body = {
    ...bodyOfNew(settings),
    ...(sessionId !== undefined && { id: sessionId }),
  }
  const creating = client.conversations.create(body, { signal })
  const view = await namingSettings(new SettingNames(givenNames), creating)
  const notices =
    settings.resume === undefined ? [] : [NO_CONVERSATION[settings.resume === 'latest' ? 'here' : 'anywhere']]
  return { view, isResumed: false, names: givenNames, notices: [...notices, ...warningsOf(view, givenNames)] }
}

/** Returns what the first conversation, and each that `/new` makes, is created with. */
export const bodyOfNew = (settings: ConversationSettings): BodyOf<'createConversation'> => ({
  ...checkpointingOf(settings),
  ...newConversation(settings),
})

/** A remote server may have no git, and refuse it. */
export const checkpointingOf = ({ cwd }: Pick<ConversationSettings, 'cwd'>): { file_checkpointing?: true } =>
  cwd !== undefined && findGit() !== undefined ? { file_checkpointing: true } : {}

/** The copy works in the same directory: it is the project of a person. */
const fork = (
  client: AgentServerClient,
  { id }: ConversationView,
  { sessionId }: ConversationSettings,
  signal: AbortSignal,
): Promise<ConversationView> =>
  client.conversation(id).fork({ workdir: 'share', ...(sessionId !== undefined && { id: sessionId }) }, { signal })

/** The other fields are those of the conversation. */
function namesOfResumed(givenNames: GivenNames, { givenLlm }: ConversationSettings): GivenNames {
  const isInForce = (field: string) => field === 'llm_config.api_key' || field.replace(/^llm_config\./, '') in givenLlm
  return Object.fromEntries(Object.entries(givenNames).filter(([field]) => isInForce(field)))
}

const warningsOf = ({ warnings = [] }: Pick<ConversationView, 'warnings'>, names: GivenNames): string[] =>
  warnings.map((warning) => new SettingNames(names).in(warning))

async function wantedConversation(
  client: AgentServerClient,
  { resume: resumedId, cwd }: ConversationSettings,
  signal: AbortSignal,
): Promise<ConversationView | undefined> {
  if (resumedId === undefined) return undefined
  if (resumedId === 'latest of all') return await latestConversation(client, undefined, signal)
  if (resumedId !== 'latest') return await findConversation(client, resumedId.id, signal)
  // A remote server has other directories: it is searched as a whole unless one is named.
  return await latestConversation(client, cwd, signal)
}

const NO_CONVERSATION = {
  here: 'there is no conversation to resume in this directory; this is a new one. --all looks in every directory.',
  anywhere: 'there is no conversation to resume; this is a new one.',
}

const LEFT_HOOKS = 'hooks of a program that has ended were removed.'

async function resume(
  client: AgentServerClient,
  foundView: ConversationView,
  settings: ConversationSettings,
  signal: AbortSignal,
): Promise<Pick<OpenedConversation, 'view' | 'notices'>> {
  const conversation = client.conversation(foundView.id)
  const hadLeft = await removeLeftHooks(conversation, foundView.client_hooks, signal)
  const changes = changesOfResumed(settings, foundView)
  const view = changes ? await conversation.updateConfig(changes, { signal }) : foundView
  const addition = await addRules(conversation, settings, signal)
  return { view, notices: [...(hadLeft ? [LEFT_HOOKS] : []), ...warningsOf(view, {}), ...warningsOf(addition, {})] }
}

/** Rules that allow hold for the runs of a command without the chat; those that deny stay. */
async function addRules(
  { permissionRules }: ConversationHandle,
  { allowedTools, disallowedTools, overridesRuns }: ConversationSettings,
  signal: AbortSignal,
): Promise<{ readonly warnings?: string[] | undefined }> {
  const toolsToAllow = overridesRuns ? [] : allowedTools
  if (toolsToAllow.length + disallowedTools.length === 0) return {}
  const { allow, ask, deny } = await permissionRules.get({ signal })
  const rules = { allow: union(allow, toolsToAllow), ask, deny: union(deny, disallowedTools) }
  return await permissionRules.replace(rules, { signal })
}

const union = (some: readonly string[], more: readonly string[]) => [...new Set([...some, ...more])]
