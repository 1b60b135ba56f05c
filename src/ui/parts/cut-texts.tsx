/** What the list of events has left out of an event, read when somebody wants to see it. */
import { useEffect, useState } from 'preact/hooks'
import type { Event } from '../../contract/events/event.ts'
import { texts } from '../state/preferences.ts'
import { client, messageOf } from '../state/session.ts'
import { count } from './amounts.ts'
import { visible } from '../text/visible.ts'
import { Output } from './output.tsx'

type CutPlace = NonNullable<Event['cut_texts']>[number]

export function CutTexts({ event }: { readonly event: Event | undefined }) {
  return (
    <>
      {event?.cut_texts?.map((cutText) => (
        <CutText key={cutText.pointer} event={event} cut={cutText} />
      ))}
    </>
  )
}

type Part = { readonly text: string } | { readonly image: string } | { readonly fault: string }

function CutText({ event, cut }: { readonly event: Event; readonly cut: CutPlace }) {
  const [part, setPart] = useState<Part>()
  useEffect(() => () => void (part && 'image' in part && URL.revokeObjectURL(part.image)), [part])
  const load = async () => {
    const response = await client().conversation(event.conversation_id).getEventPart(event.id, cut.pointer)
    if (cut.media_type === undefined) setPart({ text: await response.text() })
    else setPart({ image: URL.createObjectURL(await response.blob()) })
  }
  const name = `${visible(cut.pointer)}: ${texts.value.showAll(count(cut.characters))}`
  if (part && 'text' in part) return <Output text={part.text} label={visible(cut.pointer)} />
  if (part && 'image' in part) return <img class="picture" src={part.image} alt={visible(cut.media_type ?? '')} />
  return (
    <p>
      <button
        type="button"
        class="link"
        onClick={() => void load().catch((error: unknown) => setPart({ fault: messageOf(error) }))}
      >
        {name}
      </button>
      {part && <span class="fault"> {part.fault}</span>}
    </p>
  )
}
