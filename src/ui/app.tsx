/** The frame around every screen: where one can go, whether the server answers, and the screen itself. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { Dialogs } from './parts/dialogs.tsx'
import type * as ConversationModule from './screens/conversation.tsx'
import { ErrorBoundary } from './parts/error-boundary.tsx'
import { useLoaded, WhenLoaded } from './parts/loaded.tsx'
import { Notices } from './parts/notices.tsx'
import { Costs } from './screens/costs.tsx'
import { Conversations } from './screens/conversations.tsx'
import { Inbox } from './screens/inbox.tsx'
import { Login } from './screens/login.tsx'
import { New } from './screens/new.tsx'
import { Preferences } from './screens/preferences.tsx'
import { Server } from './screens/server.tsx'
import { Webhooks } from './screens/webhooks.tsx'
import { callForAttention } from './state/attention.ts'
import { dialog, listenToKeys } from './state/keys.ts'
import { announcement, followServer, howManyWait } from './state/live.ts'
import { isOutdated, watchVersion } from './state/page-version.ts'
import { texts } from './state/preferences.ts'
import { addressOf, route } from './state/route.ts'
import { noticeSilence } from './state/silence.ts'
import { awaySince, CODE_HASH, logOut, may, mayCreate, messageOf, resume, session } from './state/session.ts'
import { clock } from './parts/amounts.ts'

export function App() {
  const [isReady, setReady] = useState(false)
  const [fault, setFault] = useState<string>()
  // Effects that ask the server run before something is drawn: those after it wait for a frame, each.
  useLayoutEffect(() => {
    const enter = () =>
      void resume()
        .catch((error: unknown) => setFault(messageOf(error)))
        .finally(() => setReady(true))
    enter()
    // A link with a code may be opened in this tab.
    const onHash = () => location.hash.startsWith(CODE_HASH) && enter()
    addEventListener('hashchange', onHash)
    return () => removeEventListener('hashchange', onHash)
  }, [])
  if (session.value) return may('read') ? <Frame /> : <NoScreen />
  return isReady ? <Login fault={fault} /> : <Waiting />
}

/** A quick answer is not announced by a text that is gone at once. */
const QUICK_MS = 500

function Waiting() {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), QUICK_MS)
    return () => clearTimeout(timer)
  }, [])
  const { lost, loading } = texts.value
  const since = awaySince.value
  if (since === undefined && !isSlow) return null
  return (
    <main class="login">
      <h1>agent-server</h1>
      <p class={since === undefined ? 'quiet loading' : 'fault'} role="status">
        {since === undefined ? loading : lost(clock(since))}
      </p>
    </main>
  )
}

/** A key that may not read has no screen that works. */
function NoScreen() {
  return (
    <main class="login">
      <h1>agent-server</h1>
      <p class="fault" role="alert">
        {texts.value.mayNotRead}
      </p>
      <button type="button" class="primary" onClick={() => void logOut().catch(messageOf)}>
        {texts.value.logOut}
      </button>
    </main>
  )
}

function Frame() {
  const { client } = session.value ?? {}
  // Before the screen is drawn: a person may press a key as soon as they see it.
  useLayoutEffect(listenToKeys, [])
  useEffect(() => {
    const abort = new AbortController()
    void followServer(abort.signal)
    const loading = setTimeout(() => void loadConversation().catch(() => {}), LOAD_AFTER_MS)
    const ends = [callForAttention(), watchVersion(), () => abort.abort(), () => clearTimeout(loading)]
    return () => ends.forEach((end) => end())
  }, [client])
  return (
    <div class="frame">
      <Navigation />
      <main>
        {awaySince.value !== undefined && (
          <p class="fault lost column" role="status">
            {texts.value.lost(clock(awaySince.value))}
          </p>
        )}
        {isOutdated.value && <NewVersion />}
        <ErrorBoundary key={route.value.path.slice(0, 2).join('/')}>
          <Screen />
        </ErrorBoundary>
      </main>
      <p class="unseen" role="status">
        {announcement.value}
      </p>
      <Notices />
      <Dialogs />
    </div>
  )
}

/** What is being written is kept. */
function NewVersion() {
  const { newVersion, reload } = texts.value
  return (
    <p class="fault lost" role="status">
      {newVersion}{' '}
      <button type="button" class="link" onClick={() => location.reload()}>
        {reload}
      </button>
    </p>
  )
}

type Place = {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  readonly badge: string
  readonly isWide: boolean
}

function Navigation() {
  const { inbox, jump, conversations, newConversation, costs, webhooks, server, settings } = texts.value
  const first = route.value.path[0] ?? ''
  const places: Place[] = [
    { path: '', name: inbox, icon: 'inbox', badge: howManyWait.value, isWide: false },
    { path: 'conversations', name: conversations, icon: 'list', badge: '', isWide: false },
    { path: 'new', name: newConversation, icon: 'plus', badge: '', isWide: false },
    { path: 'costs', name: costs, icon: 'bars', badge: '', isWide: true },
    { path: 'webhooks', name: webhooks, icon: 'arrow', badge: '', isWide: true },
    { path: 'server', name: server, icon: 'server', badge: '', isWide: false },
    { path: 'settings', name: settings, icon: 'sliders', badge: '', isWide: false },
  ]
  return (
    <nav class="places" aria-label="agent-server">
      <button type="button" class="jump wide" onClick={() => (dialog.value = 'palette')}>
        <Icon name="search" />
        <span class="place">{jump}</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      {places
        .filter(({ path }) => path !== 'new' || mayCreate())
        .map(({ path, name, icon, badge, isWide }) => (
          <a
            key={path}
            class={isWide ? 'wide' : undefined}
            href={path === '' ? addressOf() : addressOf(path)}
            aria-current={first === path ? 'page' : undefined}
          >
            <Icon name={icon} />
            <span class="place">{name}</span>
            {badge && <span class="badge wants">{badge}</span>}
          </a>
        ))}
    </nav>
  )
}

function Screen() {
  const [first, id] = route.value.path
  if (first === 'c' && id !== undefined) return <LateConversation id={id} />
  if (first === 'conversations') return <Conversations />
  if (first === 'new' && mayCreate()) return <New />
  if (first === 'costs') return <Costs />
  if (first === 'webhooks') return <Webhooks />
  if (first === 'server') return <Server />
  return first === 'settings' ? <Preferences /> : <Inbox />
}

/** What the first screen needs comes first, milliseconds. */
const LOAD_AFTER_MS = 500

let conversationModule: typeof ConversationModule | undefined

/** Half of the code of the page is that of a conversation: the lists do not wait for it. */
const loadConversation = async () => (conversationModule ??= await noticeSilence(import('./screens/conversation.tsx')))

function LateConversation({ id }: { readonly id: string }) {
  const loading = useLoaded(loadConversation, [])
  const { Conversation } = conversationModule ?? {}
  return Conversation ? <Conversation key={id} id={id} /> : <WhenLoaded of={loading} draw={() => null} />
}

/** Icons of one stroke on a grid of 16 px, in the colour of the text around them. */
const PATHS = {
  inbox: 'M2.5 9.5 4.5 3h7l2 6.5V13h-11zM2.5 9.5h3.3l1 1.7h2.4l1-1.7h3.3',
  list: 'M6 4h7.5M6 8h7.5M6 12h7.5M2.7 4h.6M2.7 8h.6M2.7 12h.6',
  plus: 'M8 3v10M3 8h10',
  bars: 'M3 13.5v-4M8 13.5v-11M13 13.5v-7',
  arrow: 'M4 12 12 4M6 4h6v6',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.6M5 11h.6',
  sliders:
    'M2 5h6M12 5h2M2 11h2M8 11h6M10 3.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6M6 9.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3l3.2 3.2',
} as const

type IconName = keyof typeof PATHS

function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}
