/** One conversation: its end, live, and its other tabs. */
import { titleOf } from '../../contract/events/call-title.ts'
import type { Scope } from '../../contract/key.ts'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { Action } from '../parts/action.tsx'
import { Blank } from '../parts/blank.tsx'
import { StatusMark } from '../parts/status.tsx'
import { now } from '../parts/now.ts'
import { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { addressOf, route } from '../state/route.ts'
import { connections, may } from '../state/session.ts'
import { cost, duration } from '../parts/amounts.ts'
import { short, visible } from '../text/visible.ts'
import { Changes } from './changes.tsx'
import { Chat } from './chat.tsx'
import { Commands } from './commands.tsx'
import { ConversationSettings } from './conversation-settings.tsx'
import { Files } from './files.tsx'
import { Timeline } from './timeline.tsx'

const TABS = ['chat', 'changes', 'files', 'commands', 'timeline', 'settings'] as const
type Tab = (typeof TABS)[number]

/** The scope that a tab needs besides `read`. */
const NEEDS: Partial<Record<Tab, Scope>> = { changes: 'files', files: 'files', commands: 'commands' }

const isAllowed = (tab: Tab): boolean => {
  const scope = NEEDS[tab]
  return scope === undefined || may(scope)
}

export function Conversation({ id }: { readonly id: string }) {
  const [open, setOpen] = useState<OpenConversation>()
  useLayoutEffect(() => {
    const openedConversation = new OpenConversation(id)
    setOpen(openedConversation)
    void openedConversation.open()
    return () => openedConversation.close()
  }, [id])
  useEffect(() => void open?.recover(), [connections.value])
  const tab: Tab = TABS.filter(isAllowed).find((name) => name === route.value.path[2]) ?? 'chat'
  if (!open || open.id !== id) return null
  if (open.isDeleted.value)
    return (
      <section class="page">
        <Blank text={open.fault.value ?? texts.value.deleted}>
          <a class="button" href={addressOf('conversations')}>
            {texts.value.allConversations}
          </a>
        </Blank>
      </section>
    )
  if (open.fault.value && !open.view.value)
    return (
      <section class="conversation">
        <Blank text={open.fault.value} isFault>
          <button type="button" onClick={() => void open.recover()}>
            {texts.value.retry}
          </button>
        </Blank>
      </section>
    )
  return (
    <section class="conversation">
      <Head open={open} tab={tab} />
      {open.fault.value && (
        <p class="fault column" role="alert">
          {open.fault.value}
        </p>
      )}
      {tab === 'chat' && <Chat open={open} />}
      {tab === 'changes' && <Changes open={open} />}
      {tab === 'files' && <Files open={open} />}
      {tab === 'commands' && <Commands open={open} />}
      {tab === 'timeline' && <Timeline open={open} />}
      {tab === 'settings' && <ConversationSettings open={open} />}
    </section>
  )
}

type Doing = { readonly what: string; readonly ms?: number }

/** What the agent does now, and for how long. */
function doingIn(open: OpenConversation): Doing | undefined {
  const { status, queued } = open.view.value ?? {}
  if (status !== 'running' || queued || open.isBehind.value) return undefined
  const call = open.rows.value.findLast((row) => row.kind === 'call' && !row.result)
  if (call?.kind !== 'call') return { what: texts.value.thinking }
  const { name, input, timestamp } = call.use
  const ms = Math.max(0, now.value - Date.parse(timestamp))
  return { what: `${visible(name)}: ${short(titleOf(name, input), 80)}`, ms }
}

/** What comes first stays on a small screen. */
function Facts({ open }: { readonly open: OpenConversation }) {
  const { llm_config, context, cost_usd } = open.view.value ?? {}
  const doing = doingIn(open)
  const share = context?.size ? `${Math.round((100 * context.used) / context.size)} %` : undefined
  const amounts = [
    doing?.ms !== undefined && duration(doing.ms),
    cost_usd !== undefined && cost(cost_usd),
    share && texts.value.context(share),
  ].filter(Boolean)
  return (
    <p class="meta quiet">
      <span>{doing?.what ?? short(llm_config?.model ?? '', 60)}</span>
      {amounts.length > 0 && <span class="number"> · {amounts.join(' · ')}</span>}
    </p>
  )
}

/** Scrolls to the open tab: the tabs are wider than a small screen. */
function showTab(link: HTMLElement | null): void {
  link?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
}

function Head({ open, tab }: { readonly open: OpenConversation; readonly tab: Tab }) {
  const { untitled, pause, run } = texts.value
  const view = open.view.value
  return (
    <header class="head column">
      <div class="top">
        <h1 class={view ? undefined : 'quiet'}>
          {view ? short(view.title ?? view.preview ?? untitled) : texts.value.loading}
        </h1>
        {view && <StatusMark status={view.status} queued={view.queued} />}
        {may('write') && view?.status === 'running' && (
          <Action data-escape act={() => open.handle.pause({ interrupt: true })}>
            {pause}
          </Action>
        )}
        {may('write') && view?.status === 'paused' && <Action act={() => open.handle.run()}>{run}</Action>}
      </div>
      <Facts open={open} />
      <nav class="tabs" aria-label={short(view?.title ?? untitled)}>
        {TABS.filter(isAllowed).map((name) => (
          <a
            key={name}
            href={addressOf('c', open.id, ...(name === 'chat' ? [] : [name]))}
            aria-current={name === tab ? 'page' : undefined}
            ref={name === tab ? showTab : null}
          >
            {texts.value.tabs[name]}
          </a>
        ))}
      </nav>
    </header>
  )
}
