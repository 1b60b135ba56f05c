/**
 * Limits what keys may request within a route: limited keys create conversations for their own user only, and cannot
 * choose a workdir. The only file that says which fields of a request choose who gets what a conversation says, its sender
 * included: they need the scope `read`, whatever the route.
 */
import { createHash } from 'node:crypto'
import type { CreateConversation, UpdateConfig } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { CreateReplay } from '../../contract/replay.ts'
import type { Hooks } from '../../contract/hooks/hooks.ts'
import { eachHook } from '../../contract/hooks/hooks.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { RunRequest } from '../../contract/run.ts'
import type { PostTask, Task } from '../../contract/values/task.ts'
import { changesPrograms } from '../../contract/values/environment-variables.ts'
import type { Secrets } from '../../contract/secret.ts'
import type { Access } from '../../access/access.ts'
import type { Idempotency } from '../../state/idempotency.ts'
import { limitAs } from './profile-limits.ts'

/** Returns the request restricted by the key's limits. Throws `forbidden`. */
export function createAs(access: Access, request: CreateConversation): CreateConversation {
  mayCreate(access)
  refuseDirectories(access, request)
  if (Object.keys(request.secrets ?? {}).length > 0) access.require('secrets')
  mayUseHooks(access, request.hooks)
  mayConnect(access, request)
  if (typeof request.llm_config?.['base_url'] === 'string') access.require('read')
  const { userId, profiles } = access.limits
  limitAs(access, 'POST /conversations', request)
  if (profiles) mayUseProfile(profiles, request)
  if (userId === undefined) return request
  if (request.user_id !== undefined && request.user_id !== userId)
    throw new Problem('forbidden', 'This key is limited to another user_id. Leave out user_id.')
  return { ...request, user_id: userId }
}

function mayUseProfile(profiles: ReadonlySet<string>, { profile }: CreateConversation): void {
  if (profile === undefined || !profiles.has(profile))
    throw new Problem('forbidden', `This key is limited to profiles. Send profile: ${[...profiles].join(', or ')}.`)
}

/** What a client may take from the files of its project. */
export const ofProject = (access: Access) => ({
  mayUse: (hooks: Hooks) => mayUseHooks(access, hooks),
  mayConnect: (mcp: CreateConversation['mcp']) => mayConnect(access, { mcp }),
})

/** An MCP server with a command is a command of the client; one with a URL receives what the agent tells it. */
function mayConnect(access: Access, { mcp = {} }: Pick<CreateConversation, 'mcp'>): void {
  const { mcpServers = {}, stdio_servers: programs = [], shttp_servers: remote = [], sse_servers: older = [] } = mcp
  const servers = Object.values(mcpServers)
  if (programs.length > 0 || servers.some(({ command }) => command !== undefined)) access.require('commands')
  if (remote.length + older.length > 0 || servers.some(({ url }) => url !== undefined)) access.require('read')
}

/** These fields only say how the model is asked. All others may lead to another endpoint or account, which reads all. */
const HARMLESS_LLM_FIELDS: ReadonlySet<string> = new Set<keyof LlmConfig>([
  'temperature',
  'top_p',
  'top_k',
  'reasoning_effort',
  'max_output_tokens',
  'context_window',
  'disable_vision',
  'timeout',
  'num_retries',
  'input_cost_per_token',
  'output_cost_per_token',
  'cache_read_cost_per_token',
  'cache_write_cost_per_token',
  'tool_choice',
])

/** The models that a conversation asks get what was said in it. */
function mayUseModels(access: Access, { llm_config = {}, compaction, agents = {} }: UpdateConfig): void {
  const fields = Object.entries(llm_config).filter(([, value]) => value !== null)
  const models = [compaction?.model, ...Object.values(agents).map(({ model }) => model)]
  if (fields.some(([field]) => !HARMLESS_LLM_FIELDS.has(field)) || models.some((model) => model !== undefined))
    access.require('read')
}

const TAKEN: ReadonlySet<string> = new Set(['conversation_exists', 'conversation_deleted'])

/** Creates, or forks. A limited key learns of an id that is taken, and not whether its conversation was deleted. */
export async function hidingDeleted<T>(access: Access, create: () => Promise<T>): Promise<T> {
  try {
    return await create()
  } catch (error) {
    if (access.isLimited && error instanceof Problem && TAKEN.has(error.code))
      throw new Problem('conversation_exists', 'This id cannot be used. Leave out id.')
    throw error
  }
}

/** Applies to forks, too. Throws `forbidden`. */
export function mayCreate({ limits }: Access): void {
  if (limits.conversations !== undefined)
    throw new Problem('forbidden', 'This key is limited to certain conversations and cannot create one.')
}

/** Throws `forbidden`. */
export function mayConfigure(access: Access, update: UpdateConfig): void {
  limitAs(access, 'PUT /conversations/:id/config', update)
  refuseDirectories(access, update)
  const { permission_mode, hooks, enable_message_rewrite_hooks, network, mcp, env, workdir } = update
  // A variable, such as GIT_SSH_COMMAND, changes what an allowed command runs; what is in a directory needs fewer approvals.
  const places = [env, workdir, update.additional_directories]
  const grants = [permission_mode, hooks, enable_message_rewrite_hooks, network, mcp, ...places]
  if (grants.some((field) => field !== undefined)) access.require('approve')
  mayUseHooks(access, hooks)
  mayConnect(access, { mcp })
  mayUseModels(access, update)
}

/** Throws `forbidden`: as in `mayConfigure`, some variables change what an allowed command runs. */
export function mayPutSecrets(access: Access, secrets: Secrets): void {
  if (Object.keys(secrets).some(changesPrograms)) access.require('approve')
}

/** Throws `forbidden`. Each fork asks the models of `llm_configs`, and gets the files of its original. */
export function mayReplay(access: Access, { check, permission_mode, network, llm_configs = [] }: CreateReplay): void {
  mayCreate(access)
  if (check) access.require('commands')
  if (permission_mode !== undefined || network !== undefined) access.require('approve')
  for (const llm_config of llm_configs) mayConfigure(access, { llm_config })
}

/** The response to a request that waits has the answer of the agent, which can repeat the whole conversation. */
export function mayRun(access: Access, run: Partial<RunRequest>): void {
  // Another model gets what was said.
  if (run.wait || run.model !== undefined) access.require('read')
  if (run.permission_mode !== undefined || run.allowed_tools !== undefined) access.require('approve')
}

/** The result of a task has the answer of the agent, too. Its status does not. */
export function taskFor(access: Access, { result, ...task }: Task): Task {
  return result !== undefined && access.allows('read') ? { ...task, result } : task
}

/** Hooks run commands, or receive what the conversation says. Throws `forbidden`. */
function mayUseHooks(access: Access, hooks: Hooks | undefined): void {
  const types = new Set([...eachHook(hooks ?? {})].map(({ hook }) => hook.type))
  if (types.has('command')) access.require('commands')
  if (types.has('http')) access.require('read')
}

/** Throws `forbidden`. */
export function mayPostTask(access: Access, { runnable }: Pick<PostTask, 'runnable'>): void {
  if (runnable.type === 'Command') access.require('commands')
}

/**
 * All creates share one store of idempotency keys. A user must neither receive another user's conversation nor learn
 * that the key is used.
 */
export function ownKey(access: Access, idempotency: Idempotency | undefined): Idempotency | undefined {
  const { userId, profiles } = access.limits
  if (!idempotency || (userId === undefined && !profiles)) return idempotency
  const limits = profiles ? [userId ?? null, ...[...profiles].toSorted()] : userId
  // Clients' own keys contain no space.
  return {
    ...idempotency,
    key: `${createHash('sha256').update(JSON.stringify(limits)).digest('hex').slice(0, 32)} ${idempotency.key}`,
  }
}

/** A directory could belong to another conversation. */
function refuseDirectories(
  { isLimited }: Access,
  { workdir, additional_directories: more }: Pick<UpdateConfig, 'workdir' | 'additional_directories'>,
): void {
  if (workdir !== undefined && isLimited)
    throw new Problem('forbidden', 'A limited key cannot choose a workdir. Leave out workdir.')
  if (more !== undefined && isLimited)
    throw new Problem('forbidden', 'A limited key cannot choose directories. Leave out additional_directories.')
}
