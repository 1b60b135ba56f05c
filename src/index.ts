/** What the npm package `agent-server` exports. Browsers import `agent-server/client`, which is a part of it. */
export * from './client/client.ts'
export { createServer } from './sdk/create-server.ts'
export type { CreateServerOptions, RunningServer } from './sdk/create-server.ts'
export type { HookCallback, HookInput, HookMatcher, HooksOption } from './sdk/options/hooks-option.ts'
export type {
  AgentOptions,
  AnswerQuestions,
  CanUseTool,
  PermissionContext,
  PermissionVerdict,
  Prompt,
  PromptMessage,
  QueryOptions,
} from './sdk/options/query-options.ts'
export { query } from './sdk/query.ts'
export type { Query, QueryEvent, QueryRequest } from './sdk/query.ts'
export { run } from './sdk/run.ts'
export type { QueryOutcome } from './sdk/run.ts'
export { sessions } from './sdk/sessions.ts'
export type { Sessions } from './sdk/sessions.ts'
export { tool } from './sdk/tools/tool.ts'
export type { SdkTool, ToolCallContext, ToolHandler } from './sdk/tools/tool.ts'
