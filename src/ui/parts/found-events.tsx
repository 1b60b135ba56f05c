/** Events with the words of a search, of all conversations. */
import { useState } from 'preact/hooks'
import type { FoundEvent } from '../../contract/search.ts'
import { texts } from '../state/preferences.ts'
import { addressOfFound, findEvents } from '../state/search.ts'
import { short, visible } from '../text/visible.ts'
import { age } from './amounts.ts'
import { useLoaded } from './loaded.tsx'
import { now } from './now.ts'

const MOST = 20
/** The conversations that match stay in sight. */
const FIRST = 3

export function FoundEvents({ q }: { readonly q: string }) {
  const { value = [], fault } = useLoaded((signal) => findEvents(q, MOST, signal), [q])
  const [wholeQuery, setWholeQuery] = useState<string>()
  if (fault !== undefined) return <p class="fault">{fault}</p>
  if (value.length === 0) return null
  return (
    <section class="found" aria-label={texts.value.foundEvents} data-found>
      <h2>{texts.value.foundEvents}</h2>
      {value.slice(0, wholeQuery === q ? MOST : FIRST).map((foundEvent) => (
        <a class="summary" key={foundEvent.event_id} href={addressOfFound(foundEvent)}>
          <span class="top">
            <span class="name quiet">{short(foundEvent.title ?? texts.value.untitled, 60)}</span>
            <time class="number quiet" dateTime={foundEvent.timestamp}>
              {age(foundEvent.timestamp, now.value)}
            </time>
          </span>
          <Snippet event={foundEvent} />
        </a>
      ))}
      {value.length > FIRST && wholeQuery !== q && (
        <button type="button" class="link" onClick={() => setWholeQuery(q)}>
          {texts.value.allFound(value.length)}
        </button>
      )}
    </section>
  )
}

function Snippet({ event: { snippet, matches } }: { readonly event: FoundEvent }) {
  const ends = [0, ...matches.map(({ end }) => end)]
  return (
    <span>
      {matches.map(({ start, end }, place) => (
        <span key={start}>
          {visible(snippet.slice(ends[place], start))}
          <mark>{visible(snippet.slice(start, end))}</mark>
        </span>
      ))}
      {visible(snippet.slice(ends.at(-1)))}
    </span>
  )
}
