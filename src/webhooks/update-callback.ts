/** Applies a change to a callback. Credentials belong to one receiver: another origin gets none of them. */
import type { UpdateCallback, UpdatedCallback } from '../contract/callback.ts'
import { MASK } from '../contract/values/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { createWebhookSecret } from '../security/webhook-signature.ts'
import type { Credentials } from './callback-record.ts'
import type { Entry } from './callback-set.ts'

/** `reported` is what the response reports in addition to the callback. */
export type UpdatedEntry = { readonly entry: Entry; readonly reported: Pick<UpdatedCallback, 'secret' | 'dropped'> }

/** Throws a `Problem` if it would need credentials that are lost. */
export function updateCallback(
  before: Entry,
  request: UpdateCallback,
  seal: (credentials: Credentials) => string,
): UpdatedEntry {
  const { record } = before
  const isElsewhere = request.url !== undefined && originOf(request.url) !== originOf(record.url)
  const { credentials, reported } = isElsewhere ? forNewOrigin(before, request) : forSameOrigin(before, request)
  if (request.enabled) requireCredentials(credentials)
  const isEnabled = request.enabled ?? record.enabled
  const entry = {
    history: before.history,
    credentials,
    record: {
      ...record,
      url: request.url ?? record.url,
      events: request.events === undefined ? record.events : request.events ? [...new Set(request.events)] : undefined,
      ...(credentials && credentials !== before.credentials && { sealed: seal(credentials) }),
      enabled: isEnabled,
      disabled_reason: isEnabled || request.enabled === false ? undefined : record.disabled_reason,
      // The client has changed something: retry immediately.
      failing: undefined,
      updated_at: new Date().toISOString(),
    },
  }
  return { entry, reported }
}

type ChosenCredentials = { readonly credentials: Credentials | undefined; readonly reported: UpdatedEntry['reported'] }

function forSameOrigin({ credentials }: Entry, { headers }: UpdateCallback): ChosenCredentials {
  if (!headers) return { credentials, reported: {} }
  const keptCredentials = requireCredentials(credentials)
  return {
    credentials: { ...keptCredentials, headers: mergeHeaders(lowerNames(headers), keptCredentials.headers) },
    reported: {},
  }
}

/** The former receiver knows the former secret and could sign requests to the new one with it. */
function forNewOrigin(before: Entry, { headers = {} }: UpdateCallback): ChosenCredentials {
  const sentHeaders = mergeHeaders(lowerNames(headers), {})
  const former = Object.keys(before.credentials?.headers ?? {})
  const isDropped = former.some((name) => sentHeaders[name] === undefined)
  const credentials = { secret: createWebhookSecret(), headers: sentHeaders }
  return { credentials, reported: { secret: credentials.secret, ...(isDropped && { dropped: ['headers'] as const }) } }
}

/** A masked value keeps the stored one; if there is none, the header is left out. */
function mergeHeaders(
  headers: Record<string, string>,
  keptHeaders: Readonly<Record<string, string>>,
): Record<string, string> {
  const before = new Map(Object.entries(keptHeaders))
  const values = Object.entries(headers).map(([name, value]) => [name, value === MASK ? before.get(name) : value])
  return withoutUndefined(Object.fromEntries(values))
}

export const lowerNames = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

export function requireCredentials(credentials: Credentials | undefined): Credentials {
  if (credentials) return credentials
  throw new Problem(
    'storage_failed',
    'The secret of this callback was encrypted with another key; start the server with it (OPENHANDS_SECRET_KEY, or the old master key after a comma), or delete the callback and create it again.',
  )
}

const originOf = (url: string): string => new URL(url).origin
