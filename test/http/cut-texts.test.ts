/** Long texts of events: cut in lists and streams, and read one by one. */
import { afterAll, expect, test } from 'vitest'
import { KEY, expectProblem, setHttp } from './fixtures.ts'

const http = await setHttp()
const url = await http.listen()
afterAll(() => http[Symbol.asyncDispose]())

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const IMAGE = Buffer.concat([PNG, Buffer.alloc(3000, 7)])
const TEXT = `${'x'.repeat(149)}\u{1F600}<script>alert(1)</script>${'y'.repeat(500)}`

const id = await http.create()
await http.call('POST', `/conversations/${id}/events`, { name: 'deployed', data: { 'a/b~c': TEXT, html: 'short' } })
const content = [
  { type: 'text', text: 'Look.' },
  { type: 'image', media_type: 'image/png', data: IMAGE.toString('base64') },
]
await http.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content } })

const list = async (query: string) =>
  (await http.call('GET', `/conversations/${id}/events?after_seq=1${query}`)).body.items
const partOf = (eventId: string, pointer: string, headers = {}) =>
  fetch(`${url}/conversations/${id}/events/${eventId}/part?pointer=${encodeURIComponent(pointer)}`, {
    headers: { authorization: `Bearer ${KEY}`, ...headers },
  })

test('a list cuts each text after max_text characters and leaves out larger images, and says what it has cut', async () => {
  const [event, message] = await list('&max_text=150')
  // No half of a character.
  expect(event.data).toEqual({ 'a/b~c': 'x'.repeat(149), html: 'short' })
  expect(event.cut_texts).toEqual([{ pointer: '/data/a~1b~0c', characters: TEXT.length }])
  expect(message.content).toEqual([content[0], { ...content[1], data: '' }])
  expect(message.cut_texts).toEqual([
    { pointer: '/content/1', characters: content[1]!.data!.length, media_type: 'image/png' },
  ])
  const [whole] = await list('')
  expect(whole.data['a/b~c']).toBe(TEXT)
  expect(whole.cut_texts).toBeUndefined()
  expect(await list('&max_text=10000')).toEqual(await list(''))
})

test('a stream does the same', async () => {
  const stop = new AbortController()
  const response = await fetch(`${url}/conversations/${id}/events/stream?after_seq=1&max_text=150`, {
    headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' },
    signal: stop.signal,
  })
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream()))
    if ((text += chunk).includes('"image/png"')) break
  stop.abort()
  expect(text).toContain('"cut_texts":[{"pointer":"/data/a~1b~0c"')
  expect(text).not.toContain('yyyyy')
})

test('a part has the text that was stored, and no browser shows it as a page', async () => {
  const [event, message] = await list('&max_text=150')
  const text = await partOf(event.id, event.cut_texts[0].pointer)
  expect(await text.text()).toBe(TEXT)
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(text.headers.get('content-disposition')).toMatch(/^attachment/)
  expect(text.headers.get('x-content-type-options')).toBe('nosniff')
  expect(text.headers.get('content-security-policy')).toContain('sandbox')
  const image = await partOf(message.id, '/content/1')
  expect(image.headers.get('content-type')).toBe('image/png')
  expect(Buffer.from(await image.arrayBuffer()).equals(IMAGE)).toBe(true)
  expect(await (await partOf(event.id, '/data')).json()).toEqual(event.data && { 'a/b~c': TEXT, html: 'short' })
})

test('what is not there is 404, and a key without read gets nothing', async () => {
  const [event] = await list('')
  for (const pointer of ['data', '/nothing', '/data/__proto__', '/id/0', '/data/toString'])
    expect((await partOf(event.id, pointer)).status).toBe(404)
  const { body } = await http.call('POST', '/keys', { name: 'a client', scopes: ['files'] })
  const answer = await http.call('GET', `/conversations/${id}/events/${event.id}/part?pointer=/data`, undefined, {
    authorization: `Bearer ${body.key}`,
  })
  expectProblem(answer, 403, 'forbidden')
})
