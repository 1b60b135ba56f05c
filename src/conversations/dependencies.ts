/** The dependencies that all conversations of a server share, in groups: the composition root creates them once. */
import type { Sandbox } from '../contract/values/sandbox.ts'
import type { EventLog } from '../events/event-log.ts'
import type { FileRules } from '../files/jail/file-gate.ts'
import type { ConversationLimits } from '../limits/conversation-limits.ts'
import type { ResourceLimiter } from '../limits/resource-limits.ts'
import type { Queue } from '../lib/queue.ts'
import type { PendingAuthorizations } from '../mcp/oauth/pending-authorizations.ts'
import type { ShellNetwork } from '../sandbox/launch.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { UrlFetch } from '../security/guarded-fetch.ts'
import type { Storage } from '../storage/storage.ts'
import type { OutputFilter, Shells } from '../shell/shell.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ToolName } from '../tools/registry.ts'
import type { SharedToolDeps } from './agents/build-tool-calls.ts'
import type { ModelAccess } from './runs/llm-factory.ts'
import type { HandedOverDeps } from './client-tools/handed-over-calls.ts'
import type { HookDeps } from './hooks/build-hooks.ts'
import type { ClientCommandLimits } from '../workspace/exec/command-limits.ts'
import type { FilesDeps } from '../workspace/files/files.ts'
import type { NetworkDeps } from '../workspace/network.ts'
import type { State } from '../state/state.ts'
import type { CallbackDispatcher } from '../webhooks/dispatcher.ts'
import type { SnapshotLimits } from '../workspace/snapshots/prune-snapshots.ts'
import type { WorkdirRules } from '../workspace/workdirs/workdir.ts'

export type ConversationDeps = {
  readonly storage: Storage
  readonly server: ServerFacts
  readonly models: ModelAccess
  readonly workspace: Workspace
  readonly exec: Execution
  readonly limits: Limiter
  readonly network: NetworkDeps
  readonly mcp: McpAccess
  readonly dispatcher: CallbackDispatcher
  readonly hooks: HookDeps
  readonly clientTools?: Pick<HandedOverDeps, 'restAfterMs'>
  /** Limits the number of runs that work at the same time. */
  readonly slots: Queue
  /** Aborted when the server hands its conversations over to other instances: then no agent begins another step. */
  readonly leaving?: AbortSignal | undefined
  readonly metrics: Metrics
  readonly logger: Logger
  /** Creates a redactor that already knows the server's own secrets. */
  readonly createRedactor: (conversationId: string) => Redactor
  /** Called with each log that is opened or created, before anything is appended to it. */
  readonly onLogOpened: (log: EventLog) => void
}

/** What MCP servers of all conversations share. */
export type McpAccess = {
  /** Reaches public addresses, and those that the operator allows. */
  readonly fetch: UrlFetch
  /** Authorizations that users were asked for. */
  readonly pending: PendingAuthorizations
  /** The URL that a user who has authorized a server is sent back to. */
  readonly redirectUrl: () => string
  /** Bytes of text that the result of a call keeps. */
  readonly keptBytes: number
  /** The directory of complete results, so that commands can read them. */
  readonly outputsOf: (directory: string) => string
}

export type ServerFacts = {
  readonly version: string
  readonly isolation: 'bubblewrap' | 'none'
  readonly sandbox?: Sandbox | undefined
}

/** The workdirs of conversations, and the files that can be read and changed there. */
export type Workspace = {
  readonly workdirRules: WorkdirRules
  /** File dependencies that all conversations share. */
  readonly files: Pick<FilesDeps, 'io' | 'ripgrep' | 'unfinished' | 'git'>
  /** Returns the file rules for tools and for clients. */
  readonly fileRules: (conversation: {
    stateDirectory: string
    workdir: () => string
    additionalDirectories?: () => readonly string[]
  }) => FileRules
  /** Default: 30 days and 1 GiB. */
  readonly snapshotLimits?: SnapshotLimits
  /** The operator's directory of settings for all conversations that ask for it. */
  readonly userSettings: string | undefined
  /** Returns the directories that `~` may stand for: in the shells of a conversation, and for the server. */
  readonly homesOf: (directory: string) => readonly string[]
}

export type Execution = SharedToolDeps['exec'] & {
  readonly createShells: (options: {
    conversationId: string
    workdir: string
    additionalDirectories: readonly string[]
    directory: string
    network: () => ShellNetwork
    secretsEnv: () => Record<string, string>
    createFilter: () => OutputFilter
    limits: ConversationLimits
  }) => Shells
  /** Tools that this server cannot offer. */
  readonly missingTools?: ReadonlySet<ToolName>
  /** Limits of the commands that clients run; missing ones have defaults. */
  readonly commandLimits?: Partial<ClientCommandLimits>
}

/** The resource limits of conversations. */
export type Limiter = Pick<ResourceLimiter, 'check' | 'inForce'> & {
  readonly limit: (options: {
    conversationId: string
    requested: State['settings']['limits']
    /** The directories of the agent. */
    directories: () => readonly string[]
    directory: string
    /** The directory for the output of clients' commands. */
    commandOutputs: string
  }) => ConversationLimits
}
