/** The options of `query()` and `run()`. An option that is absent has the default of the server. */
import type { z } from 'zod'
import type { CreateConversation } from '../../contract/conversation.ts'
import type { ToolPreset } from '../../contract/settings.ts'
import type { AskedQuestion } from '../../contract/values/question.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { ToolConfig } from '../../contract/limits/tool-config.ts'
import type { OtherModeName } from '../../contract/mode-names.ts'
import type { UserInput } from '../../contract/values/message.ts'
import type { PermissionModeInput } from '../../contract/values/permission.ts'
import type { AnySdkTool } from '../tools/tool.ts'
import type { HooksOption } from './hooks-option.ts'
import type { CamelizedFields } from './camel-case.ts'
import type { SettingOptions } from './setting-options.ts'

type Wire = z.input<typeof CreateConversation>

/** A message of the user: text, or parts of text and images. */
export type PromptMessage = string | Pick<UserInput, 'content'>
export type Prompt = PromptMessage | AsyncIterable<PromptMessage>

export type ServerOption = {
  readonly baseUrl: string | URL
  readonly apiKey?: string | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The place of the sessions: in a data directory on this machine, or on a server. */
export type SessionPlace = {
  /** Default: the data directory of the server, `OPENHANDS_DATA_DIR` or the one of XDG. */
  readonly persistDir?: string | undefined
  /** A server to use instead of a data directory on this machine. */
  readonly server?: ServerOption | undefined
}

export type ModelOptions = {
  /** The API of the endpoint. */
  readonly provider?: LlmConfig['provider']
  readonly model?: string | undefined
  readonly apiKey?: string | undefined
  readonly baseUrl?: string | undefined
  /** Further fields of `llm_config`, such as `temperature` and `maxOutputTokens`. */
  readonly llm?: CamelizedFields<LlmConfig> | undefined
}

/** Some of `SettingOptions`, with what an editor says about them. */
export type LimitOptions = {
  /** Model answers of one run. */
  readonly maxSteps?: number | undefined
  /** Seconds of one run. */
  readonly timeoutS?: number | undefined
  /** The budget of the whole session. */
  readonly maxBudgetUsd?: number | undefined
  /** Whether models without a known cost may be asked under the budget. */
  readonly allowUnpriced?: boolean | undefined
}

export type ContinueOptions = {
  /** The id of the session to continue. */
  readonly resume?: string | undefined
  /** Continues in a copy: of the session that `resume` or `continue` names, or of the one with this id. */
  readonly fork?: boolean | string | undefined
  /** Continues the session that changed last, of those that work in `cwd` if that is given. */
  readonly continue?: boolean | undefined
  /** The id of the new session, or of the copy: a UUID. */
  readonly sessionId?: string | undefined
  /** The last event that a copy has: its id, or its seq. */
  readonly resumeSessionAt?: string | number | undefined
}

/** Each names a session, which a query can continue without a prompt. */
export type ContinuedSession = { readonly resume: string } | { readonly continue: true } | { readonly fork: string }

export type ProjectOptions = {
  /** The directory that the agent works in. Default: a new one, which is removed with the session. */
  readonly cwd?: string | undefined
  /** Another name of `cwd`, for the directory that `settingSources` are read from. */
  readonly projectDir?: string | undefined
  /** Existing directories that the agent works in besides `cwd`. For a continued session they replace the former ones. */
  readonly additionalDirectories?: readonly string[] | undefined
  readonly settingSources?: Wire['setting_sources']
  readonly agents?: Readonly<Record<string, AgentOptions>> | undefined
  readonly mcpServers?: NonNullable<Wire['mcp']>['mcpServers']
  /** Replaces the prompt of the server, or appends to it. */
  readonly systemPrompt?: string | { readonly append: string } | undefined
}

export type ToolOptions = {
  /** A preset, or all tools of the agent: names of tools and presets of the server, and tools that `tool()` made. */
  readonly tools?: ToolPreset | readonly (string | AnySdkTool)[] | undefined
  readonly allowedTools?: readonly string[] | undefined
  readonly disallowedTools?: readonly string[] | undefined
  /** Limits of single tools: `{ Bash: { timeoutS: 30 } }`. */
  readonly toolConfig?: CamelizedToolConfig | undefined
}

type CamelizedToolConfig = {
  readonly [Tool in keyof ToolConfig]?: CamelizedFields<NonNullable<ToolConfig[Tool]>> | undefined
}

/** Stays open until somebody has decided: `signal` aborts if another client does, or the query ends. */
export type CanUseTool = (
  name: string,
  input: unknown,
  context: PermissionContext,
) => PermissionVerdict | Promise<PermissionVerdict>

export type PermissionContext = {
  readonly signal: AbortSignal
  readonly sessionId: string
  readonly toolUseId: string
  /** Why the call needs a decision. */
  readonly reason: string
  /** The rules that `remember` adds; absent if no rule says exactly this. */
  readonly rules?: readonly string[] | undefined
}

export type PermissionVerdict =
  | {
      readonly behavior: 'allow'
      /** The input that runs instead. The agent is informed. */
      readonly updatedInput?: Record<string, unknown> | undefined
      /** True to allow such calls in the future, too. */
      readonly remember?: boolean | undefined
    }
  | {
      readonly behavior: 'deny'
      /** The agent reads it. */
      readonly message?: string | undefined
      readonly remember?: boolean | undefined
      /** True to end the run, too. */
      readonly interrupt?: boolean | undefined
    }

/** Answers by the text of the question. Undefined: nobody answers, and the query ends with a session that waits. */
export type QuestionAnswers = Readonly<Record<string, string | string[]>> | undefined
export type AnswerQuestions = (
  questions: readonly AskedQuestion[],
  context: { readonly signal: AbortSignal; readonly sessionId: string; readonly toolUseId: string },
) => QuestionAnswers | Promise<QuestionAnswers>

/** The terminal that `interactiveApprover` asks on. */
export type Terminal = { readonly input: NodeJS.ReadableStream; readonly output: NodeJS.WritableStream }

export type ApprovalOptions = {
  /** Default: `default` if something here decides about calls, otherwise the mode of the server. */
  readonly permissionMode?: ModeName | undefined
  readonly canUseTool?: CanUseTool | undefined
  readonly answerQuestions?: AnswerQuestions | undefined
  /** Asks on the terminal of this process, or on the one that is given. */
  readonly interactiveApprover?: boolean | Terminal | undefined
  readonly hooks?: HooksOption | undefined
}

export type WireMode = z.infer<typeof PermissionModeInput>
/** A permission mode, also as the Claude Agent SDK calls it. */
export type ModeName = WireMode | OtherModeName

/** Options as the Claude Agent SDK calls them. */
export type OtherNames = {
  /** Another name of `maxSteps`. */
  readonly maxTurns?: number | undefined
  /** Another name of `llm.reasoningEffort`. */
  readonly effort?: LlmConfig['reasoning_effort']
  /** One model for `llm.fallbackModels`. */
  readonly fallbackModel?: string | undefined
  /** Another form of `outputSchema`. */
  readonly outputFormat?: { readonly type: 'json_schema'; readonly schema: Record<string, unknown> } | undefined
  /** Another name of `fork: true`. */
  readonly forkSession?: boolean | undefined
}

export type QueryOptions = SessionPlace &
  SettingOptions &
  ModelOptions &
  LimitOptions &
  ContinueOptions &
  ProjectOptions &
  ToolOptions &
  ApprovalOptions &
  OtherNames & {
    /** A JSON Schema, or a zod schema, that the final answer must fit. */
    readonly outputSchema?: z.ZodType | Record<string, unknown> | undefined
    /** True to get events such as text while the model writes it, too. */
    readonly includePartialMessages?: boolean | undefined
    readonly abortController?: AbortController | undefined
    /** Further fields of `POST /conversations`, in the names of the wire. */
    readonly conversation?: Wire | undefined
  }

/** An agent that the agent can give tasks to with its tool `Task`. */
export type AgentOptions = {
  /** The work that it is for; the agent that calls it reads this. */
  readonly description: string
  /** Its system prompt. */
  readonly prompt: string
  readonly tools?: readonly string[] | undefined
  readonly disallowedTools?: readonly string[] | undefined
  readonly model?: string | undefined
  readonly maxSteps?: number | undefined
  /** Another name of `maxSteps`. */
  readonly maxTurns?: number | undefined
  readonly permissionMode?: ModeName | undefined
}
