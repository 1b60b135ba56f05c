/** The frame around every screen: where one can go, whether the server answers, and the screen itself. */
import { useEffect, useState } from 'preact/hooks'
import { Dialogs } from './parts/dialogs.tsx'
import { Icon } from './parts/icon.tsx'
import type { IconName } from './parts/icon.tsx'
import { Notices } from './parts/notices.tsx'
import { Costs } from './screens/costs.tsx'
import { Conversation } from './screens/conversation.tsx'
import { Conversations } from './screens/conversations.tsx'
import { Inbox } from './screens/inbox.tsx'
import { Login } from './screens/login.tsx'
import { New } from './screens/new.tsx'
import { Preferences } from './screens/preferences.tsx'
import { Server } from './screens/server.tsx'
import { Webhooks } from './screens/webhooks.tsx'
import { callForAttention } from './state/attention.ts'
import { dialog, listenToKeys } from './state/keys.ts'
import { announcement, followServer, forPeople } from './state/live.ts'
import { texts } from './state/preferences.ts'
import { addressOf, route } from './state/route.ts'
import { CODE_HASH, lostSince, may, messageOf, resume, session } from './state/session.ts'
import { clock } from './parts/amounts.ts'

export function App() {
  const [isReady, setReady] = useState(false)
  const [fault, setFault] = useState<string>()
  useEffect(() => {
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
  if (session.value) return <Frame />
  return isReady ? <Login fault={fault} /> : null
}

function Frame() {
  const { client } = session.value ?? {}
  useEffect(() => {
    const abort = new AbortController()
    void followServer(abort.signal)
    const ends = [callForAttention(), listenToKeys(), () => abort.abort()]
    return () => ends.forEach((end) => end())
  }, [client])
  return (
    <div class="frame">
      <Navigation />
      <main>
        {lostSince.value !== undefined && (
          <p class="fault lost" role="status">
            {texts.value.lost(clock(lostSince.value))}
          </p>
        )}
        <Screen />
      </main>
      <p class="unseen" role="status">
        {announcement.value}
      </p>
      <Notices />
      <Dialogs />
    </div>
  )
}

type Place = {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  readonly badge: number
  readonly isWide: boolean
}

function Navigation() {
  const { inbox, jump, conversations, newConversation, costs, webhooks, server, settings } = texts.value
  const first = route.value.path[0] ?? ''
  const waiting = forPeople.value?.length ?? 0
  const places: Place[] = [
    { path: '', name: inbox, icon: 'inbox', badge: waiting, isWide: false },
    { path: 'conversations', name: conversations, icon: 'list', badge: 0, isWide: false },
    { path: 'new', name: newConversation, icon: 'plus', badge: 0, isWide: false },
    { path: 'costs', name: costs, icon: 'bars', badge: 0, isWide: true },
    { path: 'webhooks', name: webhooks, icon: 'arrow', badge: 0, isWide: true },
    { path: 'server', name: server, icon: 'server', badge: 0, isWide: false },
    { path: 'settings', name: settings, icon: 'sliders', badge: 0, isWide: false },
  ]
  return (
    <nav class="places" aria-label="agent-server">
      <button type="button" class="jump wide" onClick={() => (dialog.value = 'palette')}>
        <Icon name="search" />
        <span class="place">{jump}</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      {places
        .filter(({ path }) => path !== 'new' || may('write'))
        .map(({ path, name, icon, badge, isWide }) => (
          <a
            key={path}
            class={isWide ? 'wide' : undefined}
            href={path === '' ? addressOf() : addressOf(path)}
            aria-current={first === path ? 'page' : undefined}
          >
            <Icon name={icon} />
            <span class="place">{name}</span>
            {badge > 0 && <span class="badge wants">{badge}</span>}
          </a>
        ))}
    </nav>
  )
}

function Screen() {
  const [first, id] = route.value.path
  if (first === 'c' && id !== undefined) return <Conversation key={id} id={id} />
  if (first === 'conversations') return <Conversations />
  if (first === 'new') return <New />
  if (first === 'costs') return <Costs />
  if (first === 'webhooks') return <Webhooks />
  if (first === 'server') return <Server />
  return first === 'settings' ? <Preferences /> : <Inbox />
}
