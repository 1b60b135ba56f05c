/** What was said and done, and the line for the next message. */
import { memo } from 'preact/compat'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { titleOfRequest } from '../../contract/requests/request-forms.ts'
import { requestOf } from '../../contract/events/opened-request.ts'
import { Blank } from '../parts/blank.tsx'
import { submitOnEnter } from '../parts/fields.ts'
import { now } from '../parts/now.ts'
import { attempt } from '../parts/notices.tsx'
import { Plan } from '../parts/plan.tsx'
import { RequestCard } from '../parts/request-card.tsx'
import { wordsOfEnd } from '../parts/first-answer.ts'
import { ToolCard } from '../parts/tool-card.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import type { RequestItem, ChatRow } from '../state/items.ts'
import { messageDraftOf } from '../state/message-draft.ts'
import { texts } from '../state/preferences.ts'
import { route } from '../state/route.ts'
import { may } from '../state/session.ts'
import { waitingSeqs } from '../state/unread.ts'
import { Markdown } from '../text/markdown.tsx'
import { short } from '../text/visible.ts'
import { EventRow, Origin } from './event-row.tsx'

export function Chat({ open }: { readonly open: OpenConversation }) {
  const [isAtEnd, setAtEnd] = useState(true)
  const rows = open.rows.value
  const target = useTarget(open)
  const isRunning = open.view.value?.status === 'running'
  const waiting = useMemo(() => (isRunning ? waitingSeqs(rows) : NONE), [rows, isRunning])
  // Nobody reads above the end where the chat is not shown.
  useEffect(() => () => (open.noticeEnd(true), void open.toEnd()), [open])
  const notice = (value: boolean) => {
    open.noticeEnd(value)
    setAtEnd(value)
  }
  return (
    <>
      <VirtualRows
        // A list begins at its end, or at its target.
        key={`${open.id} ${open.place.value}`}
        rows={rows}
        keyOf={(row) => row.key}
        estimate={48}
        label={texts.value.tabs.chat}
        role="region"
        follows={!open.isBehind.value}
        target={target}
        onStart={() => void open.readOlder()}
        onEnd={() => void open.readNewer()}
        onAtEnd={notice}
        draw={(row) => <Row row={row} open={open} waiting={waiting} />}
        after={<Tail open={open} />}
      />
      <Plan rows={rows} />
      {(!isAtEnd || open.isBehind.value) && (
        <button type="button" class="to-end" aria-label={texts.value.toTheEnd} onClick={() => void toEnd(open)}>
          ↓
        </button>
      )}
      {may('write') && <Composer open={open} />}
    </>
  )
}

/** The row of the event that the address names, once it is loaded. */
function useTarget(open: OpenConversation): string | undefined {
  const seq = Math.floor(Number(route.value.query.get('seq') ?? 0))
  const rows = open.rows.value
  const row = seq > 0 ? rows.find((one) => one.seq >= seq) : undefined
  // The first events may have no row.
  const isBefore = seq > 0 && seq < (rows[0]?.seq ?? 0) && open.hasOlder.value
  const isLoaded = row !== undefined && !isBefore
  // Who has found it can go elsewhere.
  const foundSeq = useRef(0)
  if (isLoaded) foundSeq.current = seq
  useEffect(() => {
    if (isBefore && foundSeq.current !== seq) void open.goTo(seq)
  }, [isBefore, rows, seq])
  return isLoaded ? row.key : undefined
}

async function toEnd(open: OpenConversation): Promise<void> {
  await open.toEnd()
  const list = document.querySelector('.conversation .scroller')
  list?.scrollTo(0, list.scrollHeight)
}

const NONE: ReadonlySet<number> = new Set()

type RowProps = { readonly row: ChatRow; readonly open: OpenConversation; readonly waiting: ReadonlySet<number> }

/** Drawn again when it changes, not in each frame in which somebody scrolls. */
const Row = memo(({ row, open, waiting }: RowProps) => {
  if (row.kind === 'call') {
    const agent = row.use.agent_name
    return (
      <div class={agent === undefined ? 'row column' : 'row column nested'} data-seq={row.seq}>
        {agent !== undefined && <span class="quiet">{short(agent)}</span>}
        <ToolCard
          call={row}
          output={open.outputs.value.get(row.key)}
          now={row.result ? 0 : now.value}
          isWaiting={isWaitingFor(open)}
        >
          <Origin event={row.use} open={open} name="" />
        </ToolCard>
      </div>
    )
  }
  return (
    <div class="row column" data-seq={row.seq}>
      {row.kind === 'request' ? (
        <RequestRow row={row} open={open} />
      ) : (
        <EventRow event={row.event} open={open} isWaiting={waiting.has(row.seq)} />
      )}
    </div>
  )
})

const isWaitingFor = ({ view }: OpenConversation): boolean => view.value?.status.startsWith('waiting') ?? false

function RequestRow({ row: { request, end }, open }: { readonly row: RequestItem; readonly open: OpenConversation }) {
  if (!end) return <RequestCard conversationId={open.id} request={requestOf(request)} />
  return (
    <div class="event">
      <p class="quiet">
        {texts.value.inLanguage(titleOfRequest(request))}: {wordsOfEnd(end)}
      </p>
      <Origin event={request} open={open} name="" />
    </div>
  )
}

/** Shows what is being written, or that the model thinks. */
function Tail({ open }: { readonly open: OpenConversation }) {
  const { text, reasoning } = open.writing.value
  const view = open.view.value
  const current = open.rows.value.findLast((row) => row.kind === 'call' && !row.result)
  return (
    <div class="tail column">
      {view?.status === 'idle' && open.timed.value.length === 0 && <Blank text={texts.value.nothingSaid} />}
      {reasoning && !text && <p class="quiet reasoning">{short(reasoning.slice(-400), 300)}</p>}
      {text && <Markdown text={text} />}
      {view?.status === 'running' && !view.queued && !text && !current && (
        <p class="quiet working">
          <span class="shape" aria-hidden="true">
            ◐
          </span>{' '}
          {texts.value.thinking}
        </p>
      )}
    </div>
  )
}

/** The most that a message takes of the screen before it scrolls, in pixels. */
const MOST_HEIGHT = 240

/** A field is as high as its text, also once that is shorter. */
function fitToText(area: HTMLTextAreaElement): void {
  area.style.height = ''
  if (area.value === '') return
  const borders = area.offsetHeight - area.clientHeight
  area.style.height = `${Math.min(area.scrollHeight + borders, MOST_HEIGHT)}px`
}

function Composer({ open }: { readonly open: OpenConversation }) {
  const { message, send } = texts.value
  const draft = messageDraftOf(open.id)
  const text = draft.text.value
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => draft.follow(), [draft])
  useEffect(() => {
    if (area.current) fitToText(area.current)
  }, [text])
  const post = async () => {
    try {
      await draft.send((sentText, options) => open.handle.send(sentText, options))
    } finally {
      // A button that is disabled loses the focus. Who has gone elsewhere meanwhile, as to a request, stays there.
      const { activeElement, body } = document
      if (activeElement === body || area.current?.form?.contains(activeElement)) area.current?.focus()
    }
  }
  return (
    <form class="composer column" onSubmit={(event) => (event.preventDefault(), attempt(post))}>
      <textarea
        ref={area}
        rows={1}
        value={text}
        placeholder={message}
        aria-label={message}
        onInput={({ currentTarget }) => draft.write(currentTarget.value)}
        onKeyDown={submitOnEnter}
      />
      <button type="submit" class="primary" disabled={draft.isSending.value || !/\S/.test(text)}>
        {send}
      </button>
    </form>
  )
}
