/** Builds the tools of a conversation and the calls of its agent. */
import { adviceFor } from '../../agent/repeats/habits.ts'
import type { ChangingTools } from '../../agent/describe-tool.ts'
import type { CallHooks } from '../../agent/call-hooks.ts'
import { ToolCalls } from '../../agent/tool-calls.ts'
import { limitsIn } from '../../contract/limits/tool-config.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ConversationLimits } from '../../limits/conversation-limits.ts'
import type { DeniedFiles } from '../../policy/denied-files.ts'
import { deniedFiles } from '../../policy/denied-files.ts'
import type { GateRules } from '../../policy/rules/gate-rules.ts'
import type { GateOptions } from '../../policy/permissions.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import type { ConversationStorage } from '../../storage/storage.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { ProjectAccess } from '../../tools/project/project-access.ts'
import type { TaskAccess } from '../../tools/task/task-access.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { Storage } from '../../storage/storage.ts'
import type { ToolDeps } from '../../tools/registry.ts'
import type { Tool } from '../../tools/tool.ts'
import type { WebAccess } from '../../tools/web/web-access.ts'
import type { ShellsOfAgent } from '../../workspace/exec/conversation-shells.ts'
import type { ConversationNetwork } from '../../workspace/network.ts'
import { createOpenRequest } from '../requests/held-handler.ts'
import type { HeldRequests } from '../requests/held-requests.ts'
import type { CallResults } from '../live/call-results.ts'
import type { AgentView } from '../live/live-state.ts'

/** Tool dependencies that differ between conversations. */
export type ConversationToolDeps = Omit<ToolDeps, 'files' | 'search' | 'web' | 'pdfs' | 'searchEngine'> & {
  /** See `WebAccess`. */
  readonly webRefusal: WebAccess['refusal']
  /** Returns what the current deny rules say of files, however they were found. */
  readonly deniedFiles: () => DeniedFiles | undefined
  /** Returns the current workdir. */
  readonly workdir: () => string
  readonly additionalDirectories: () => readonly string[]
  readonly quota: DiskQuota | undefined
}

/** What the calls of all conversations share. */
export type SharedToolDeps = {
  readonly exec: { readonly createTools: (names: readonly string[], deps: ConversationToolDeps) => Tool[] }
  /** Returns the directories that `~` may stand for: in the shells of a conversation, and for the server. */
  readonly workspace: { readonly homesOf: (directory: string) => readonly string[] }
  readonly storage: Pick<Storage, 'availability'>
}

export type ToolParts = {
  readonly id: string
  readonly own: ConversationStorage
  readonly directory: string
  readonly logger: Logger
  readonly log: Pick<EventLog, 'append' | 'ended' | 'publish' | 'subscribe'>
  readonly state: AgentView
  readonly results: CallResults
  /** The rules of the agent, and of those above it. */
  readonly rules: () => readonly GateRules[]
  readonly limits: ConversationLimits
  readonly workdir: () => string
  readonly additionalDirectories: () => readonly string[]
  readonly redactor: Redactor
  readonly shells: ShellsOfAgent
  readonly network: ConversationNetwork
  readonly project: ProjectAccess
  readonly changing: ChangingTools
  readonly subagents: TaskAccess
  readonly heldRequests: HeldRequests
  readonly hooks: () => CallHooks | undefined
}

export function buildToolCalls(deps: SharedToolDeps, parts: ToolParts): ToolCalls {
  const { id, own, directory, logger, log, state, results, rules, limits, workdir, redactor } = parts
  const { shells, network, project, changing, hooks, additionalDirectories } = parts
  const openRequest = createOpenRequest(parts.heldRequests, redactor.redact)
  return new ToolCalls({
    tools: deps.exec.createTools(state.current.settings.tools, {
      shells,
      project,
      subagents: parts.subagents,
      webRefusal: (url, signal) => network.refusal(url, signal),
      deniedFiles: () => {
        const deny = [...new Set(rules().flatMap((each) => each.rules.deny))]
        const homes = deps.workspace.homesOf(directory)
        return deniedFiles({ deny }, { workdir: workdir(), additionalDirectories: additionalDirectories(), homes })
      },
      stateDirectory: directory,
      workdir,
      additionalDirectories,
      quota: limits.quota,
      lastOutput: (name) => state.current.lastOutputs[name],
      limitsOf: (name) => limitsIn(state.current.settings.tool_config, name),
      sealer: own.sealer,
      redact: redactor.redactInSlices,
      onFileChanged: (path, how) => hooks()?.fileChanged(path, how),
    }),
    changing,
    lease: deps.storage.availability.lease,
    settings: () => state.current.settings,
    context: () => ({ conversationId: id, workdir: workdir(), openRequest }),
    redactor,
    emit: async (drafts) => void (await results.store(drafts, (each) => log.append(each))),
    adviceFor: (result) => adviceFor(state.current.repeats, result, state.current.openCalls),
    onOutput: (tool_use_id, stream, text, offset) =>
      log.publish({ type: 'ToolOutputDelta', tool_use_id, stream, offset, text }),
    hooks,
    onLogClosed: (onClose) => log.subscribe({ onClose }),
    onCrash(error, call) {
      // Its files may be gone by then.
      const level = log.ended === undefined ? 'error' : 'debug'
      logger[level]({ err: error, conversation_id: id, tool: call.name }, 'a tool threw')
    },
  })
}

/** Returns what a permission gate knows of calls. `toolCalls` is built later. */
export const ofCalls = (toolCalls: () => ToolCalls): Pick<GateOptions, 'accessOf' | 'definitionOf'> => ({
  accessOf: (call) => toolCalls().accessOf(call),
  definitionOf: (name) => toolCalls().definitionOf(name),
})
