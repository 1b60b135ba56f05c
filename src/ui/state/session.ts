/** The login of the page, and the client that all requests of the page go through. */
import { computed, signal } from '@preact/signals'
import type { AgentServerClient } from '../../client/client.ts'
import { AgentServerError, createClient, webSocketSource } from '../../client/client.ts'
import type { ReplyOf, StreamSource } from '../../client/client.ts'
import type { Scope as KeyScope } from '../../contract/key.ts'
import { LOGIN_VALUE_NAME } from '../../contract/values/login-value.ts'
import { visible } from '../text/visible.ts'
import { BASE_URL } from './base-url.ts'
import { forgetAll, keepNoValues, keepValuesOf, onOtherTab, remember, rememberedValue } from './remembered.ts'
import { serverNow, timedFetch } from './server-time.ts'
import { noticeSilence, silentSince } from './silence.ts'

export type PageSession = {
  readonly client: AgentServerClient
  /** Its half of the login. */
  readonly value: string
  readonly me: ReplyOf<'me'>
}

/** Undefined: nobody is logged in. */
export const session = signal<PageSession | undefined>(undefined)

/** Whether a login of this page has ended without its person. */
export const hasEnded = signal(false)

/** The time since when there is no connection to the firehose, milliseconds; undefined while there is one. */
export const lostSince = signal<number | undefined>(undefined)

/** The time since when the server cannot be reached, or does not answer, in milliseconds; undefined while it does. */
export const awaySince = computed(() => lostSince.value ?? silentSince.value)

/** Grows each time that a connection to the firehose has opened: what was read before it may be out of date. */
export const connections = signal(0)

/** Grows each time that a connection that was lost, or could not be made, is there. */
export const recoveries = signal(0)

/** The first frame of a connection says that it has opened. */
function withNotice(source: StreamSource): StreamSource {
  return async function* (request) {
    let isOpen = false
    for await (const frame of source(request)) {
      if (request.path === '/firehose' && !isOpen) {
        isOpen = true
        if (connections.value > 0 || lostSince.value !== undefined) recoveries.value += 1
        lostSince.value = undefined
        connections.value += 1
      }
      yield frame
    }
  }
}

/** Ends as soon as the browser knows that it has no network: a socket alone learns that by silence, after a long time. */
class PageSocket extends WebSocket {
  constructor(url: string) {
    super(url)
    const onOffline = () => {
      this.dispatchEvent(new Event('error'))
      this.close()
    }
    addEventListener('offline', onOffline)
    this.addEventListener('close', () => removeEventListener('offline', onOffline))
  }
}

const fetchHere: typeof fetch = (...request) => noticeSilence(timedFetch(...request))

const clientWith = (headers: Readonly<Record<string, string>>, maxRetries?: number): AgentServerClient => {
  const options = { baseUrl: BASE_URL, headers, fetch: fetchHere, maxRetries }
  return createClient({ ...options, streamSource: withNotice(webSocketSource({ ...options, WebSocket: PageSocket })) })
}

/** Throws an `AgentServerError`. The key is not kept. */
export async function logIn(
  credential: { readonly key: string } | { readonly code: string },
  isReader = false,
): Promise<void> {
  // Its answer ends the cookie.
  await ending
  const createdLogin = await clientWith({}).logins.create({ ...credential, ...(isReader && { scopes: ['read'] }) })
  remember(LOGIN_VALUE_NAME, createdLogin.value)
  await begin(createdLogin.value)
}

/** What a link with a one-time code ends with, before the code. */
export const CODE_HASH = '#login='

/** Continues a login of this browser, or uses the one-time code of the link. */
export async function resume(): Promise<void> {
  const code = location.hash.startsWith(CODE_HASH) ? location.hash.slice(CODE_HASH.length) : undefined
  const value = rememberedValue(LOGIN_VALUE_NAME)
  // It works once, and has no place in the history.
  if (code !== undefined) history.replaceState(undefined, '', location.pathname)
  if (session.value) return
  // A link of somebody else does not replace a login that works: what is written then would be theirs.
  if (value !== undefined) await beginWhenThere(value).catch(unless(code !== undefined))
  if (code !== undefined && !session.value) await logIn({ code })
}

/** Returns a handler that throws what it gets, unless it is a refusal that is `expected`. */
const unless = (expectation: boolean) => (error: unknown) => {
  if (!expectation || !isRefused(error)) throw error
}

/** How long the server may take to say whose the login is, and the wait before it is asked again, in milliseconds. */
const [ANSWERED_MS, RETRY_MS] = [15_000, 1000]

/** Continues as soon as the server is there. Meanwhile `lostSince` says that it is away. */
async function beginWhenThere(value: string): Promise<void> {
  for (;;) {
    try {
      return await begin(value)
    } catch (error) {
      if (!isAway(error)) throw error
      lostSince.value ??= serverNow()
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

/** It has not answered, or a proxy says that it does not. */
const isAway = (error: unknown): boolean =>
  error instanceof AgentServerError
    ? error.status === undefined || error.status >= 500
    : error instanceof DOMException && error.name === 'TimeoutError'

/** Whether somebody was logged in since the page was loaded. */
let wasUsed = false

/** A page is that of one login: with another one, it is loaded again, so that nothing that it knows, or still asks for, is left. */
async function begin(value: string): Promise<void> {
  const isEarly = beginEarly(value)
  try {
    const me = await clientWith({ 'X-Login': value }, 0).me({ signal: AbortSignal.timeout(ANSWERED_MS) })
    if (isEarly) return update(value, me)
    const hasReadOthers = keepValuesOf(me.key_id ?? me.kind)
    if (wasUsed || hasReadOthers) return await loadAgain()
    start(value, me)
  } catch (error) {
    if (isRefused(error)) forgetValue(value)
    // The page continues the same login later.
    else if (isEarly) wasUsed = false
    if (isEarly && session.peek()?.value === value) session.value = undefined
    throw error
  }
}

type Me = PageSession['me']

function start(value: string, me: Me): void {
  wasUsed = true
  remember(ME, JSON.stringify({ value, me }))
  session.value = { client: clientWith({ 'X-Login': value }), value, me }
}

/** What the server has said about a login, with its value. */
const ME = 'me'
let isLoaded = false

/**
 * A page that is loaded again begins with what the server has said about its login before, instead of waiting until it says so
 * again. Returns false if it has said nothing.
 */
function beginEarly(value: string): boolean {
  const me = isLoaded ? undefined : rememberedMe(value)
  isLoaded = true
  if (!me) return false
  keepValuesOf(me.key_id ?? me.kind)
  start(value, me)
  return true
}

function rememberedMe(value: string): Me | undefined {
  try {
    const entry: unknown = JSON.parse(rememberedValue(ME) ?? '')
    return isKnown(entry) && entry.value === value ? entry.me : undefined
  } catch {
    return undefined
  }
}

/** Returns false for what another version of this file has written. */
const isKnown = (entry: unknown): entry is { readonly value: string; readonly me: Me } => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its fields are looked at
  const { me } = entry as { readonly me?: Partial<Me> }
  return Array.isArray(me?.scopes) && typeof me.kind === 'string'
}

/** The rights of the key may have changed. */
function update(value: string, me: Me): void {
  const current = session.peek()
  if (current?.value !== value || JSON.stringify(current.me) === JSON.stringify(me)) return
  remember(ME, JSON.stringify({ value, me }))
  session.value = { ...current, me }
}

/** Never returns. */
function loadAgain(): Promise<never> {
  location.reload()
  return new Promise(() => {})
}

session.subscribe((value) => {
  if (!value) keepNoValues()
})

/** Another tab may have logged in again. */
function forgetValue(value: string | undefined): void {
  if (rememberedValue(LOGIN_VALUE_NAME) !== value) return
  for (const name of [LOGIN_VALUE_NAME, ME]) remember(name, undefined)
}

// The cookie of the browser is that of the last login: with another value, this one has ended.
onOtherTab(LOGIN_VALUE_NAME, (value) => {
  if (session.value?.value !== value) session.value = undefined
})

const isRefused = (error: unknown): boolean => error instanceof AgentServerError && error.status === 401

let ending: Promise<unknown> | undefined

/** Ends the login at the server, too. */
export async function logOut(): Promise<void> {
  const { client, me } = session.value ?? {}
  forgetAll()
  forget()
  if (me?.login_id === undefined) return
  const deletion = client?.logins.delete(me.login_id)
  ending = deletion?.catch(() => {})
  await deletion
}

/** Drafts stay for the next login with the same key. */
function forget(): void {
  forgetValue(session.value?.value)
  session.value = undefined
}

/** The client of a page that is logged in. */
export function client(): AgentServerClient {
  if (!session.value) throw new Error('Nobody is logged in.')
  return session.value.client
}

/** False for a key that is limited to some conversations. */
export function seesAll(): boolean {
  const { conversations, user_id, profiles } = session.value?.me ?? {}
  return (conversations ?? user_id ?? profiles) === undefined
}

/** The profiles that the key is limited to: they say what it cannot choose. Undefined: it can choose. */
export const ownProfiles = (): readonly string[] | undefined => session.value?.me.profiles

/** A key that is limited to certain conversations has no others, and forks none. */
export const mayCreate = (): boolean => may('write') && session.value?.me.conversations === undefined

export const may = (scope: KeyScope): boolean => session.value?.me.scopes.includes(scope) ?? false

/** Returns what a person reads about a request that failed. A refused key ends the session. */
export function messageOf(error: unknown): string {
  if (isRefused(error)) {
    hasEnded.value ||= session.peek() !== undefined
    forget()
  }
  return visible(error instanceof Error ? error.message : String(error))
}
