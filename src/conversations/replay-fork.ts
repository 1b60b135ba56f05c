/**
 * What a fork for a replay has not, so that it reaches nobody: client tools and hooks, hooks with a URL, MCP servers that are
 * not named, and directories that it would share with its original. The only file that says what a replay may do.
 */
import { HOOK_POINTS } from '../contract/hooks/hook-point.ts'
import type { Hooks } from '../contract/hooks/hooks.ts'
import type { NetworkPolicy } from '../contract/values/network.ts'
import type { PermissionMode } from '../contract/values/permission.ts'
import { placesIn } from '../mcp/named-secrets.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { Settings } from '../state/settings.ts'
import type { SecretValues } from '../storage/storage.ts'
import { findGit } from '../workspace/git/run-git.ts'
import { checkSettings } from './check-settings.ts'
import type { ConversationDeps } from './dependencies.ts'

export type ReplayLimits = {
  readonly permissionMode: PermissionMode
  readonly network: NetworkPolicy
  /** Names of servers of the original. */
  readonly mcpServers: readonly string[]
  readonly maxBudgetUsd: number
}

type Original = { readonly settings: Settings; readonly secrets: SecretValues }

/** Callbacks are never copied. Throws a `Problem` if this server cannot enforce the network policy, or if the policy has a secret of the original. */
export async function isolateReplay(
  deps: ConversationDeps,
  { settings, secrets }: Original,
  { permissionMode, network, mcpServers, maxBudgetUsd }: ReplayLimits,
  redactor: Pick<Redactor, 'redact' | 'redactAnyCase'>,
): Promise<Original> {
  await checkSettings({ network }, { deps, redactor })
  const { client_tools: _, client_hooks: __, additional_directories: ___, hooks, mcp = {}, ...keptSettings } = settings
  const { mcp: credentials = {}, ...others } = secrets
  const namedServers = Object.fromEntries(Object.entries(mcp).filter(([name]) => mcpServers.includes(name)))
  const places = placesIn(namedServers)
  const usedCredentials = Object.fromEntries(Object.entries(credentials).filter(([place]) => places.has(place)))
  return {
    settings: {
      ...keptSettings,
      ...(hooks && { hooks: commandHooksOf(hooks) }),
      ...(Object.keys(namedServers).length > 0 && { mcp: namedServers }),
      permission_mode: permissionMode,
      confirmation_mode: false,
      network,
      max_budget_usd: maxBudgetUsd,
      allow_unpriced: false,
      generate_title: false,
      // A restart of the server must not change the table.
      resume_on_start: true,
      // The size of the diff is known from snapshots.
      file_checkpointing: findGit() !== undefined,
    },
    secrets: { ...others, ...(places.size > 0 && { mcp: usedCredentials }) },
  }
}

/** Commands run in the sandbox and may deny what the agent wants to do. A URL would learn of each of its calls. */
function commandHooksOf(hooks: Hooks): Hooks {
  const keptHooks: Hooks = {}
  for (const point of HOOK_POINTS) {
    const groups = (hooks[point] ?? []).map((group) => ({
      ...group,
      hooks: group.hooks.filter(({ type }) => type === 'command'),
    }))
    const usedGroups = groups.filter((group) => group.hooks.length > 0)
    if (usedGroups.length > 0) keptHooks[point] = usedGroups
  }
  return keptHooks
}
