/** The login of the page, and the client that all requests of the page go through. */
import { signal } from '@preact/signals'
import type { AgentServerClient } from '../../client/client.ts'
import { AgentServerError, createClient, webSocketSource } from '../../client/client.ts'
import type { ReplyOf, StreamSource } from '../../client/client.ts'
import type { Scope as KeyScope } from '../../contract/key.ts'
import { forgetDrafts } from './remembered.ts'

export type Login = {
  readonly client: AgentServerClient
  readonly me: ReplyOf<'me'>
}

/** Undefined: nobody is logged in. */
export const session = signal<Login | undefined>(undefined)

/** The server serves the page at `ui/`. */
const BASE_URL = new URL('..', location.origin + location.pathname).href

/** Since when there is no connection to the firehose, milliseconds; undefined while there is one. */
export const lostSince = signal<number | undefined>(undefined)

/** The first frame of a connection says that it has opened. */
function noticed(source: StreamSource): StreamSource {
  return async function* (request) {
    for await (const frame of source(request)) {
      if (request.path === '/firehose') lostSince.value = undefined
      yield frame
    }
  }
}

/** Throws an `AgentServerError`. */
export async function logIn(key: string): Promise<void> {
  const options = { baseUrl: BASE_URL, apiKey: key }
  const client = createClient({ ...options, streamSource: noticed(webSocketSource(options)) })
  session.value = { client, me: await client.me() }
}

export function logOut(): void {
  forgetDrafts()
  session.value = undefined
}

/** The client of a page that is logged in. */
export function client(): AgentServerClient {
  if (!session.value) throw new Error('Nobody is logged in.')
  return session.value.client
}

export const may = (scope: KeyScope): boolean => session.value?.me.scopes.includes(scope) ?? false

/** What a person reads about a request that failed. A refused key ends the session. */
export function messageOf(error: unknown): string {
  if (error instanceof AgentServerError && error.status === 401) logOut()
  return error instanceof Error ? error.message : String(error)
}
