/** Events that are neither calls nor requests, each in a form that says what a person wants to know. */
import type { ComponentChildren } from 'preact'
import type { Event, EventOf } from '../../contract/events/event.ts'
import { Action } from '../parts/action.tsx'
import { Copy } from '../parts/copy.tsx'
import { CutTexts } from '../parts/cut-texts.tsx'
import { Picture } from '../parts/output.tsx'
import { notify } from '../parts/notices.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { messageDraftOf } from '../state/message-draft.ts'
import { texts } from '../state/preferences.ts'
import { addressOf, showFromHere } from '../state/route.ts'
import { may, mayCreate } from '../state/session.ts'
import { clock, cost, duration } from '../parts/amounts.ts'
import { Markdown } from '../text/markdown.tsx'
import { asText, short, visible, visibleProse } from '../text/visible.ts'

type Props = {
  readonly event: Event
  readonly open: OpenConversation
  /** Whether the agent has not read this message yet. */
  readonly isWaiting?: boolean
}

export function EventRow({ event, open, isWaiting = false }: Props) {
  if (event.type === 'UserMessage')
    return <Message event={event} who={event.sender ?? texts.value.you} open={open} isWaiting={isWaiting} />
  if (event.type === 'AssistantMessage') return <Answer event={event} open={open} />
  return (
    <div class="event">
      <OtherEvent event={event} />
      <Origin event={event} open={open} name="" />
    </div>
  )
}

function OtherEvent({ event }: { readonly event: Event }) {
  const { retrying, ended, deleted: _, ...t } = texts.value
  switch (event.type) {
    case 'ErrorEvent':
      return <p class="fault">{visible(event.message)}</p>
    case 'ModelRetry':
      return (
        <Line>{retrying(event.next_model ? ` (→ ${visible(event.next_model)})` : '', duration(event.wait_ms))}</Line>
      )
    case 'Result':
      return <End event={event} text={ended(event.stop_reason, event.steps)} />
    case 'CommandResult':
      return (
        <Line>
          $ <code>{short(event.command)}</code>{' '}
          <span class="badge">{event.exit_code === null ? event.status : `exit ${event.exit_code}`}</span>
        </Line>
      )
    case 'FileUpdate':
      return (
        <Line>
          {event.action} <code>{short(event.path)}</code>
        </Line>
      )
    case 'SubagentStart':
      return <Line>{t.bySubagent(short(event.agent_name ?? ''))}</Line>
    case 'ForkedFrom':
      return (
        <Line>
          {t.forked} <a href={addressOf('c', event.from_conversation_id)}>{event.from_conversation_id}</a>,{' '}
          {event.from_seq}
        </Line>
      )
    case 'ConfigUpdate':
      return (
        <Line>
          {short(
            Object.entries(event.changes)
              .map(([name, value]) => `${name}: ${asText(value)}`)
              .join(', '),
            200,
          )}
        </Line>
      )
    case 'StatusUpdate':
      return <Line>{event.reason}</Line>
    case 'MessageWithdrawn':
      return <Line>{t.withdrawn}</Line>
    case 'Condensation':
      return <Line>{t.condensed}</Line>
    case 'Rewound':
      return <Line>{t.rewound(event.to_seq)}</Line>
    default:
      return <Line>{event.type}</Line>
  }
}

const Line = ({ children }: { readonly children: ComponentChildren }) => <p class="quiet note">{children}</p>

type MessageProps = {
  readonly event: EventOf<'UserMessage'>
  readonly who: string
  readonly open: OpenConversation
  readonly isWaiting: boolean
}

function Message({ event, who, open, isWaiting }: MessageProps) {
  const { queuedMessage, takeBack } = texts.value
  const withdraw = async () => {
    const { message } = await open.handle.withdrawMessage(event.id)
    const content = message?.content ?? []
    messageDraftOf(open.id).prepend(
      typeof content === 'string'
        ? content
        : content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n'),
    )
    document.querySelector<HTMLElement>('.composer textarea')?.focus()
  }
  return (
    <div class="said user">
      <Origin event={event} open={open} name={visible(who)}>
        {isWaiting && <span class="badge wants">{queuedMessage}</span>}
        {isWaiting && may('write') && event.content.every(({ type }) => type === 'text') && (
          <Action class="link" act={withdraw}>
            {takeBack}
          </Action>
        )}
      </Origin>
      {event.content.map((part, index) =>
        part.type === 'text' ? (
          <p key={index} class="as-written">
            {visibleProse(part.text)}
          </p>
        ) : (
          <Picture key={index} part={part} />
        ),
      )}
      <CutTexts event={event} />
    </div>
  )
}

function Answer({ event, open }: { readonly event: EventOf<'AssistantMessage'>; readonly open: OpenConversation }) {
  const reasoning = event.content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : [])).join('\n')
  return (
    <div class={event.parent_tool_use_id === undefined ? 'said' : 'said nested'}>
      <Origin event={event} open={open} name={visible(event.agent_name ?? event.model)}>
        {event.cost_usd !== undefined && <span class="number">{cost(event.cost_usd)}</span>}
        {event.duration_ms !== undefined && <span class="number">{duration(event.duration_ms)}</span>}
      </Origin>
      {reasoning && (
        <details>
          <summary class="quiet">{texts.value.thoughts}</summary>
          <p class="as-written quiet">{visibleProse(reasoning)}</p>
        </details>
      )}
      <Markdown text={event.text} />
      <CutTexts event={event} />
    </div>
  )
}

type OriginProps = {
  readonly event: Event
  readonly open: OpenConversation
  readonly name: string
  readonly children?: ComponentChildren
}

/** Shows who said it and when, and what can be done from here. */
export function Origin({ event, open, name, children }: OriginProps) {
  const { forkHere, forked, linkTo, copyCurl, actions } = texts.value
  const fork = async () => {
    const show = showFromHere()
    const { id } = await open.handle.fork({ at_seq: event.seq })
    notify(forked)
    show('c', id)
  }
  const curlCommand = () => {
    const url = new URL(`../conversations/${open.id}/events/${event.id}`, location.href).href
    // The path of a proxy may have characters that a shell would read.
    return `curl -H "Authorization: Bearer $KEY" '${url.replaceAll("'", '%27')}'`
  }
  return (
    <div class="origin quiet">
      {name && <strong>{name}</strong>}
      <a
        href={`${addressOf('c', open.id)}?seq=${event.seq}`}
        title={linkTo}
        aria-label={`${clock(event.timestamp)}, ${linkTo}`}
      >
        {clock(event.timestamp)}
      </a>
      {children}
      <details class="more" name="more">
        <summary aria-label={actions}>⋯</summary>
        <Copy class="link" textOf={curlCommand}>
          {copyCurl}
        </Copy>
        {mayCreate() && (
          <Action class="link" act={fork}>
            {forkHere}
          </Action>
        )}
      </details>
    </div>
  )
}

function End({ event, text }: { readonly event: EventOf<'Result'>; readonly text: string }) {
  const { changes, cost_usd, duration_ms } = event
  const parts = [
    text,
    duration(duration_ms),
    cost_usd === undefined ? undefined : cost(cost_usd),
    changes && texts.value.changed(changes.files, changes.added, changes.removed),
  ]
  return <p class="quiet end">{parts.filter((part) => part !== undefined).join(' · ')}</p>
}
