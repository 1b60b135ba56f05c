/** Events with their long texts cut, for readers that show them; and one part of an event as a whole. */
import type { CutText } from '../contract/events/envelope.ts'
import type { Event } from '../contract/events/event.ts'
import type { StoredEvent } from './event-store.ts'
import type { PublishedRecord } from './sse-frame.ts'

type Holder = Record<string, unknown>
type Open = { readonly value: Holder; readonly pointer: string }

/** Returns the event with each text cut after so many characters, and without images that are longer in base64. */
export function cutTexts<Stored extends StoredEvent>(storedEvent: Stored, max: number): Stored {
  if (storedEvent.json.length <= max) return storedEvent
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an event, and an object that nobody else has
  const event = JSON.parse(storedEvent.json) as Event & Holder
  const cutParts: CutText[] = []
  const open: Open[] = [{ value: event, pointer: '' }]
  // A list instead of recursion, so that everything that could be stored can be cut.
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, pointer } = next
    if (isImage(value)) {
      if (value.data.length <= max) continue
      cutParts.push({ pointer, characters: value.data.length, media_type: value.media_type })
      value.data = ''
      continue
    }
    for (const [name, field] of Object.entries(value)) {
      const place = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      if (typeof field === 'string' && field.length > max) {
        cutParts.push({ pointer: place, characters: field.length })
        value[name] = field.slice(0, max).replace(/[\ud800-\udbff]$/, '')
      } else if (isHolder(field)) open.push({ value: field, pointer: place })
    }
  }
  if (cutParts.length === 0) return storedEvent
  const json = JSON.stringify({ ...event, cut_texts: cutParts })
  const { seq, type } = storedEvent
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an event of the firehose has its cursor besides
  return { seq, type, json, event, ...('cursor' in storedEvent && { cursor: storedEvent.cursor }) } as unknown as Stored
}

/** The same for what streams send; what is not stored is short. */
export const cutRecord = (record: PublishedRecord, max: number): PublishedRecord =>
  record.seq === undefined ? record : cutTexts(record, max)

export type EventPart = { readonly mediaType: string; readonly content: string | Buffer }

/** Returns what is at a JSON Pointer (RFC 6901): a text, an image, or JSON. Undefined if nothing is there. */
export function partAt(event: Event, pointer: string): EventPart | undefined {
  if (pointer !== '' && !pointer.startsWith('/')) return undefined
  let value: unknown = event
  for (const name of pointer.split('/').slice(1)) {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isHolder(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  if (typeof value === 'string') return { mediaType: 'text/plain; charset=utf-8', content: value }
  if (isHolder(value) && isImage(value))
    return { mediaType: typeOf(value.media_type), content: Buffer.from(value.data, 'base64') }
  return { mediaType: 'application/json; charset=utf-8', content: JSON.stringify(value) }
}

/** Types of which browsers show a picture and execute nothing. */
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

const typeOf = (mediaType: string): string => (PICTURES.has(mediaType) ? mediaType : 'application/octet-stream')

const isHolder = (value: unknown): value is Holder => typeof value === 'object' && value !== null

const isImage = (value: Holder): value is Holder & { data: string; media_type: string } =>
  value['type'] === 'image' && typeof value['data'] === 'string' && typeof value['media_type'] === 'string'
