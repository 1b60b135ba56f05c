/** The palette and the list of keys, in the browser's own dialog. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import type { FoundEvent } from '../../contract/search.ts'
import { dialog } from '../state/keys.ts'
import { singleKeys, texts } from '../state/preferences.ts'
import { show } from '../state/route.ts'
import { addressOfFound, findEvents } from '../state/search.ts'
import { client, mayCreate } from '../state/session.ts'
import { short } from '../text/visible.ts'
import { age } from './amounts.ts'
import { useLoaded } from './loaded.tsx'
import { now } from './now.ts'
import { StatusMark } from './status.tsx'

export function Dialogs() {
  if (dialog.value === 'palette') return <Palette />
  return dialog.value === 'help' ? <Help /> : null
}

type ModalProps = {
  readonly kind: NonNullable<typeof dialog.value>
  readonly label: string
  readonly children: ComponentChildren
}

function Modal({ kind, label, children }: ModalProps) {
  const element = useRef<HTMLDialogElement>(null)
  // Before the browser handles the next key, which is meant for the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  // `close` comes later than the next key, which may have opened the other dialog; `cancel` comes with Escape.
  const end = () => {
    if (dialog.value === kind) dialog.value = undefined
  }
  return (
    <dialog
      ref={element}
      aria-label={label}
      onCancel={end}
      onClose={end}
      onClick={(event) => event.target === element.current && element.current?.close()}
    >
      {children}
    </dialog>
  )
}

function Help() {
  const { keysTitle, help, close } = texts.value
  return (
    <Modal kind="help" label={keysTitle}>
      <h2>{keysTitle}</h2>
      <dl class="keys">
        {Object.entries(help).map(([key, what]) => (
          <div class="pair" key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">{close}</button>
      </form>
    </Modal>
  )
}

type Entry = {
  readonly key: string
  readonly name: string
  /** What tells places, conversations and events apart, after the name. */
  readonly mark?: ComponentChildren
  readonly go: () => void
}

function Palette() {
  const { palette, empty } = texts.value
  const [text, setText] = useState('')
  const [index, setIndex] = useState(0)
  const query = { sort: 'updated_at', limit: 8, ...(text && { q: text }) } as const
  const conversations = useLoaded(
    async (signal) => ({ text, items: (await client().conversations.summaries(query, { signal })).items }),
    [text],
  )
  const events = useLoaded(async (signal) => ({ text, items: await findEvents(text, 5, signal) }), [text])
  const hasText = ({ name }: Entry) => name.toLowerCase().includes(text.toLowerCase())
  const conversationEntries = (conversations.value?.items ?? []).map(entryOf)
  const entries = [
    ...places().filter(hasText),
    // Of those that were found for a former text, only some are still meant.
    ...(conversations.value?.text === text ? conversationEntries : conversationEntries.filter(hasText)),
    ...(events.value?.text === text ? events.value.items.map(eventEntryOf) : []),
  ]
  const chosenIndex = Math.min(index, entries.length - 1)
  const go = (entry: Entry) => {
    dialog.value = undefined
    entry.go()
  }
  const onKey = (event: KeyboardEvent) => {
    // These keys choose among the words of an input method.
    if (event.isComposing) return
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setIndex((chosenIndex + step + entries.length) % Math.max(1, entries.length))
    }
    const entry = entries[chosenIndex]
    if (event.key === 'Enter' && entry) go(entry)
  }
  return (
    <Modal kind="palette" label={palette}>
      <input
        class="wide-input"
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={`palette-${chosenIndex}`}
        placeholder={palette}
        aria-label={palette}
        value={text}
        onInput={({ currentTarget }) => (setText(currentTarget.value), setIndex(0))}
        onKeyDown={onKey}
      />
      <ul id="palette" role="listbox" aria-label={palette} class="palette">
        {entries.map((entry, place) => (
          <li
            key={entry.key}
            id={`palette-${place}`}
            role="option"
            aria-selected={place === chosenIndex}
            ref={place === chosenIndex ? showOption : null}
            onClick={() => go(entry)}
          >
            <span class="name">{entry.name}</span>
            {entry.mark}
          </li>
        ))}
      </ul>
      {entries.length === 0 && conversations.value?.text === text && <p class="quiet">{empty}</p>}
    </Modal>
  )
}

const showOption = (option: HTMLElement | null) => option?.scrollIntoView({ block: 'nearest' })

const keysOf = (keys: string) => (singleKeys.value === 'on' ? <kbd aria-hidden="true">{keys}</kbd> : null)

const ageOf = (time: string) => <span class="quiet number">{age(time, now.value)}</span>

function places(): Entry[] {
  const { inbox, conversations, newConversation, costs, webhooks, server, settings, keysTitle } = texts.value
  return [
    { key: 'inbox', name: inbox, mark: keysOf('g i'), go: () => show() },
    { key: 'conversations', name: conversations, mark: keysOf('g c'), go: () => show('conversations') },
    ...(mayCreate() ? [{ key: 'new', name: newConversation, mark: keysOf('g n'), go: () => show('new') }] : []),
    { key: 'costs', name: costs, go: () => show('costs') },
    { key: 'webhooks', name: webhooks, go: () => show('webhooks') },
    { key: 'server', name: server, go: () => show('server') },
    { key: 'settings', name: settings, go: () => show('settings') },
    { key: 'keys', name: keysTitle, mark: keysOf('?'), go: () => (dialog.value = 'help') },
  ]
}

const eventEntryOf = (foundEvent: FoundEvent): Entry => ({
  key: foundEvent.event_id,
  name: short(foundEvent.title === undefined ? foundEvent.snippet : `${foundEvent.title}: ${foundEvent.snippet}`),
  mark: ageOf(foundEvent.timestamp),
  go: () => (location.hash = addressOfFound(foundEvent)),
})

const entryOf = ({ id, title, preview, status, queued }: ConversationSummary): Entry => ({
  key: id,
  name: short(title ?? preview ?? id),
  mark: <StatusMark status={status} queued={queued} />,
  go: () => show('c', id),
})
