/** Checks the hooks that a client configures, and separates their secrets from what is stored in the log. */
import type { Hook, Hooks, HttpHook, PlacedHook } from '../../contract/hooks/hooks.ts'
import { eachHook } from '../../contract/hooks/hooks.ts'
import { MASK } from '../../contract/values/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'
import type { HookCredentials } from '../../hooks/http-hook.ts'
import type { HookDeps } from './build-hooks.ts'

/** Throws a `Problem` that names the field, if this server would not call one of them. */
export async function checkHooks(
  all: readonly PlacedHook[],
  fetch: Pick<HookDeps['fetch'], 'refusal'>,
  { redact, redactAnyCase }: Pick<Redactor, 'redact' | 'redactAnyCase'>,
): Promise<void> {
  for (const { path, hook, matcher } of all) {
    refuseSecretsIn({ ...shownTexts(path, hook), [`${path}: its matcher`]: matcher }, redact)
    if (hook.type === 'http') refuseSecretsIn({ [`${path}.headers`]: Object.keys(hook.headers ?? {}) }, redactAnyCase)
  }
  const refusals = await Promise.all(
    all.map(async ({ path, hook }) => {
      const refusal = hook.type === 'http' ? await fetch.refusal(hook.url) : undefined
      return refusal === undefined ? undefined : `${path}.url: ${refusal}`
    }),
  )
  const first = refusals.find((each) => each !== undefined)
  if (first !== undefined)
    throw new Problem(
      'callback_address_refused',
      `${first}. Use a public address, or have the operator allow it with OPENHANDS_CALLBACK_ALLOW.`,
    )
}

function shownTexts(path: string, hook: Hook): Record<string, string | undefined> {
  const shownText = hook.type === 'command' ? { [`${path}.command`]: hook.command } : { [`${path}.url`]: hook.url }
  return { ...shownText, [`${path}.statusMessage`]: hook.statusMessage }
}

/**
 * Returns the secrets of HTTP hooks by URL, as JSON. A masked value keeps the stored one of the same URL. Throws a
 * `Problem` if no secret is stored, or if two hooks with one URL have different ones.
 */
export function credentialsOf(
  all: Iterable<PlacedHook>,
  storedCredentials: (url: string) => HookCredentials | undefined,
): Record<string, string> {
  const byUrl = new Map<string, string>()
  for (const { path, hook } of all) {
    if (hook.type === 'command') continue
    const text = canonicalJson(credentialsIn(path, hook, storedCredentials(hook.url)))
    const other = byUrl.get(hook.url)
    if (other !== undefined && other !== text)
      throw new Problem('invalid_request', `${path}: another hook with this url has another secret or other headers.`)
    byUrl.set(hook.url, text)
  }
  return Object.fromEntries([...byUrl].filter(([, text]) => text !== '{}'))
}

function credentialsIn(path: string, hook: HttpHook, storedCredentials: HookCredentials | undefined): HookCredentials {
  const secret = hook.secret === MASK ? storedCredentials?.secret : hook.secret
  const headers = Object.entries(hook.headers ?? {}).map(([name, value]) => {
    const lower = name.toLowerCase()
    return [lower, value === MASK ? storedCredentials?.headers?.[lower] : value] as const
  })
  const isLost = (hook.secret === MASK && secret === undefined) || headers.some(([, value]) => value === undefined)
  if (isLost)
    throw new Problem(
      'invalid_request',
      `${path} holds a masked secret that is not stored for this url; send it again.`,
    )
  const sentHeaders = withoutUndefined(Object.fromEntries(headers))
  return { ...(secret !== undefined && { secret }), ...(hook.headers && { headers: sentHeaders }) }
}

/** Warns of hooks whose receivers cannot know who calls them. */
export function hookWarnings(all: readonly PlacedHook[]): string[] {
  return all.flatMap(({ path, hook }) =>
    hook.type === 'http' && hook.secret === undefined ? [`${path} has no secret: its requests are not signed`] : [],
  )
}

/** The URLs that still have secrets. */
export const urlsIn = (hooks: Hooks): ReadonlySet<string> =>
  new Set([...eachHook(hooks)].flatMap(({ hook }) => (hook.type === 'http' ? [hook.url] : [])))
