/** Makes, opens and configures conversations, from what a client asks for or the disk holds. Knows how, not when; `assemble.ts` ties the parts together. */
import type { CreateConversation, UpdateConfig } from '../contract/conversation.ts'
import type { DroppedCredential, LlmConfig } from '../contract/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import { removeTree } from '../files/trees/remove-tree.ts'
import type { StoredLog } from '../events/event-store.ts'
import { readPages } from '../events/read-pages.ts'
import { seemsToLackTools } from '../llm/models.ts'
import { redactProblem } from '../security/redaction/redact-problem.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { SecretValues } from '../security/secret-store.ts'
import { DEFAULT_TOOLS, resolveToolNames } from '../tools/registry.ts'
import { NO_CALLBACKS } from './webhooks/callback-record.ts'
import { readCallbacks } from './webhooks/callback-set.ts'
import { changesNetworkMode } from './state/commands.ts'
import { boundTo, changeOf, originOf } from './config/llm-origin.ts'
import { createConversationSecrets } from './config/secrets.ts'
import { checkEndpoint } from './config/check-endpoint.ts'
import { changesOf, llmSecrets, newSettings, parseLlmUpdate, parseNewLlm, shownFields } from './config/settings.ts'
import { refuseSecretsIn } from './config/refuse-secrets.ts'
import type { Idempotency } from './idempotency/idempotency.ts'
import { keptOf } from './idempotency/idempotency.ts'
import type { State } from './state/state.ts'
import { EMPTY_STATE, fold } from './state/state.ts'
import { checkPolicy } from '../network/server-policy.ts'
import { prepareWorkdir } from './workdirs/workdir.ts'
import type { AssemblyDeps, Opened } from './assemble.ts'
import { assemble } from './assemble.ts'
import { makeDirectory } from './workdirs/conversation-directory.ts'
import { firstEvents } from './first-events.ts'
import type { ForkOptions } from './fork.ts'
import { enterAsGuest, leaveAsGuest } from './workdirs/guest-workdirs.ts'
import { makeFork } from './fork.ts'

type OnChange = (state: State) => void

const NOT_CLOSED = 'a conversation that could not be made was not closed in good order'

/** Events folded at a time. */
const FOLD_PAGE = 1000

/** What is to be said of an update. */
export type Configured = {
  readonly warnings: readonly string[]
  /** Credentials that were for another origin. */
  readonly dropped: readonly DroppedCredential[]
}

export interface Assembler {
  /** Leaves nothing behind when it throws. */
  create(
    id: string,
    request: CreateConversation,
    idempotency: Idempotency | undefined,
    onChange: OnChange,
  ): Promise<{ opened: Opened; warnings: readonly string[] }>
  /** Leaves nothing behind when it throws. */
  fork(
    source: Opened,
    options: ForkOptions,
    onChange: OnChange,
  ): Promise<{ opened: Opened; warnings: readonly string[] }>
  open(id: string, onChange: OnChange): Promise<Opened>
  /** The new credentials hold from the next model request on. */
  configure(opened: Opened, update: UpdateConfig): Promise<Configured>
  /** The fold of a log that is not open, from `noted` on where that is of this log; undefined when it holds no event. */
  readState(id: string, noted?: State): Promise<State | undefined>
}

export function createAssembler(deps: AssemblyDeps): Assembler {
  const guests = { catalog: deps.catalog, workdirBase: deps.workdirRules.base }
  return {
    async create(id, request, idempotency, onChange) {
      const llm = parseNewLlm(request.llm_config, deps.llmDefaults)
      if (request.limits) deps.resources.check(request.limits)
      await checkEndpoint(llm.config, deps.endpointRefusal)
      const tools = resolveToolNames(request.tools ?? DEFAULT_TOOLS)
      if (request.network) checkPolicy(request.network, deps.network.server)
      const credentials = llmSecrets(llm.config)
      const isEmpty = Object.keys(credentials).length === 0
      const kept: SecretValues = {
        llm: isEmpty ? {} : boundTo(originOf(llm.config), credentials),
        env: request.secrets ?? {},
      }
      const redactor = deps.createRedactor()
      const secrets = secretsOf(deps, id, kept, redactor)
      const asSent = { workdir: request.workdir, 'Idempotency-Key': idempotency?.key, ...shownFields(llm.config) }
      refuseSecretsIn(asSent, redactor.redact)
      await makeDirectory(deps.catalog.directoryOf(id))
      // Side by side: most of what a create takes is waiting for the disk. The log's first event comes after all of it,
      // so a create that is cut off anywhere leaves no conversation.
      const workdirMade = prepareWorkdir(request.workdir, id, deps.workdirRules)
      const hasSecrets = Object.values(kept).some((group) => Object.keys(group).length > 0)
      const written = hasSecrets ? deps.secretStore.create(id, kept) : undefined
      const logMade = deps.store.create(id, written && { written, sync: () => deps.secretStore.sync(id) })
      let opened: Opened | undefined
      try {
        await Promise.allSettled([workdirMade, written, logMade])
        const workdir = await workdirMade
        if (request.workdir !== undefined) await enterAsGuest(guests, workdir, id)
        const warnings = [...llm.warnings, ...toolWarning(llm.config, tools)]
        const settings = newSettings({
          request,
          idempotency: idempotency && { ...keptOf(idempotency), ...(warnings.length > 0 && { warnings }) },
          llm: llm.config,
          workdir,
          tools,
          redact: redactor.redact,
        })
        const stored = await logMade
        const parts = { stored, state: { ...EMPTY_STATE, id, settings }, secrets, callbacks: NO_CALLBACKS, redactor }
        opened = assemble(deps, { ...parts, onChange })
        await opened.conversation.log.append(firstEvents(deps, id, request, settings, secrets.names(), redactor.redact))
        return { opened, warnings }
      } catch (error) {
        // The firehose, and others who were told of its log, hold it until it is closed.
        await opened
          ?.dispose('deleted')
          .catch((cause: unknown) => deps.logger.error({ err: cause, conversation_id: id }, NOT_CLOSED))
        // Its descriptor with it.
        await deps.store.delete(id)
        await removeTree(deps.catalog.directoryOf(id))
        const workdir = await workdirMade.catch(() => undefined)
        if (workdir !== undefined && request.workdir === undefined) await removeTree(workdir)
        else if (workdir !== undefined) await leaveAsGuest(guests, workdir, id)
        throw error instanceof Problem ? redactProblem(error, redactor.redact) : error
      }
    },

    fork: (source, options, onChange) =>
      makeFork(deps, source, options, (stored) => assembleStored(deps, stored, undefined, onChange)),

    async open(id, onChange) {
      const { log: stored, repaired } = await deps.store.open(id)
      if (repaired) deps.logger.warn({ conversation_id: id }, repaired)
      return await assembleStored(deps, stored, await deps.catalog.read(id), onChange)
    },

    async configure(opened, update) {
      const llm = update.llm_config ? parseLlmUpdate(update.llm_config) : undefined
      if (update.network) checkPolicy(update.network, deps.network.server)
      let dropped: Configured['dropped'] = []
      await opened.conversation.configure(async (state) => {
        const change = llm && changeOf(state.settings.llm_config, llm.config)
        dropped = change?.dropped ?? []
        // First of all: another field may repeat them.
        if (llm) opened.credentials.hideLlm(llm.config)
        refuseSecretsIn({ workdir: update.workdir, ...shownFields(llm?.config) }, opened.redact)
        if (llm) await checkEndpoint({ ...state.settings.llm_config, ...llm.config }, deps.endpointRefusal)
        const workdir =
          update.workdir === undefined ? undefined : await prepareWorkdir(update.workdir, state.id, deps.workdirRules)
        return {
          changes: changesOf({ update, llm: change, workdir, redact: opened.redact }),
          // Before the log tells of them: a change that is told holds.
          prepare: async () => {
            if (workdir !== undefined) await enterAsGuest(guests, workdir, state.id)
            if (change) await opened.credentials.updateLlm(change)
          },
          afterwards: async () => {
            if (update.network) opened.network.recheck()
            if (workdir !== undefined || changesNetworkMode(state, { network: update.network }))
              await opened.endShells()
            const former = state.settings.workdir
            if (workdir !== undefined) await leaveAsGuest(guests, former, state.id, workdir)
          },
        }
      })
      const { settings } = opened.conversation.state
      const ofTools = llm?.config.model === undefined ? [] : toolWarning(settings.llm_config, settings.tools)
      return { warnings: [...(llm?.warnings ?? []), ...ofTools], dropped }
    },

    async readState(id, noted) {
      const { log } = await deps.store.open(id)
      try {
        const state = await foldLog(log, noted && (await isOf(log, noted)) ? noted : undefined)
        return state.createdAt ? state : undefined
      } finally {
        await log.close()
      }
    },
  }
}

async function assembleStored(
  deps: AssemblyDeps,
  stored: StoredLog,
  noted: State | undefined,
  onChange: OnChange,
): Promise<Opened> {
  const id = stored.conversationId
  try {
    const state = await foldLog(stored, noted)
    if (!state.createdAt) throw new Problem('conversation_damaged', `The log of conversation ${id} is empty.`)
    const redactor = deps.createRedactor()
    const secrets = secretsOf(deps, id, await readSecrets(deps, id), redactor)
    const callbacks = await readCallbacks(deps.catalog.directoryOf(id), deps.logger)
    return assemble(deps, { stored, state, secrets, callbacks, redactor, onChange })
  } catch (error) {
    await stored.close()
    throw error
  }
}

/** What cannot be decrypted is missing, and told when it is needed: the rest of the conversation can still be read. */
async function readSecrets({ secretStore, logger }: AssemblyDeps, id: string): Promise<SecretValues> {
  try {
    return await secretStore.read(id)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    logger.warn({ conversation_id: id }, error.message)
    return {}
  }
}

/** Goes on from the noted state where that fits the log, and from the beginning where it does not. */
async function foldLog(log: StoredLog, noted: State | undefined): Promise<State> {
  let state = noted && noted.lastSeq <= log.head ? noted : EMPTY_STATE
  if (state.lastSeq === log.head) return state
  for await (const { events } of readPages(log, { afterSeq: state.lastSeq, limit: FOLD_PAGE }))
    for (const { event } of events) state = fold(state, event)
  return state
}

/** Whether the log's event of that seq is the one that the state was noted at: a log may have been put in another's place. */
async function isOf(log: StoredLog, { lastSeq, updatedAt }: State): Promise<boolean> {
  const { events } = await log.read({ afterSeq: lastSeq - 1, beforeSeq: lastSeq + 1, limit: 1 })
  return events[0]?.event.timestamp === updatedAt
}

function toolWarning({ model = '' }: LlmConfig, tools: readonly string[]): string[] {
  return tools.length && seemsToLackTools(model)
    ? [`${model} does not seem to support function calling; the agent may not be able to use its tools`]
    : []
}

/** From here on `redactor` hides them. */
function secretsOf({ secretStore }: AssemblyDeps, id: string, kept: SecretValues, redactor: Redactor) {
  return createConversationSecrets({ redactor, kept, write: (values) => secretStore.write(id, values) })
}
