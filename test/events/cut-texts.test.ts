/** Events for readers that show them: with long texts cut, and each cut part as a whole where it was. */
import { expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { cutRecord, cutTexts, partAt } from '../../src/events/cut-texts.ts'

const stored = (fields: object, more: object = {}) => {
  const event = { seq: 3, type: 'ToolResult', ...fields }
  return { seq: 3, type: 'ToolResult', event, json: JSON.stringify(event), ...more } as never
}
const cut = (fields: object, max: number) => {
  const { json, event } = cutTexts<{ seq: number; type: 'ToolResult'; json: string; event: Event }>(stored(fields), max)
  return { event: event as unknown as Record<string, unknown>, sent: JSON.parse(json) as Record<string, unknown> }
}
const long = 'x'.repeat(101)
const fits = 'y'.repeat(100)

test('each text that is longer than allowed is cut, wherever it is, and named with its length', () => {
  const { event, sent } = cut({ output: long, list: [fits, { 'a/b~c': `${long}x` }], none: null }, 100)
  const left = { seq: 3, type: 'ToolResult', list: [fits, { 'a/b~c': 'x'.repeat(100) }], none: null }
  expect(event).toEqual({ ...left, output: 'x'.repeat(100) })
  expect(sent).toEqual({
    ...event,
    cut_texts: expect.arrayContaining([
      { pointer: '/output', characters: 101 },
      { pointer: '/list/1/a~1b~0c', characters: 102 },
    ]),
  })
  expect(sent['cut_texts']).toHaveLength(2)
})

test('a character is not cut in half', () => {
  expect(cut({ output: `${'x'.repeat(99)}😀😀` }, 100).sent['output']).toBe('x'.repeat(99))
  expect(cut({ output: `${'x'.repeat(98)}😀😀` }, 100).sent['output']).toBe(`${'x'.repeat(98)}😀`)
})

test('an image is left out as a whole if it is longer', () => {
  const image = (data: string) => ({ type: 'image', media_type: 'image/png', data })
  const { sent } = cut({ output: [image(long), image(fits)] }, 100)
  expect(sent['output']).toEqual([image(''), image(fits)])
  expect(sent['cut_texts']).toEqual([{ pointer: '/output/0', characters: 101, media_type: 'image/png' }])
  const tiny = cut({ output: [image('abcdef'), image('abc')] }, 5).sent
  expect(tiny['output'], 'Its type is whole, however short texts must be.').toEqual([
    image(''),
    { ...image('abc'), type: 'image' },
  ])
  const others = [
    { type: 'image', data: long },
    { type: 'file', media_type: 'image/png', data: long },
  ]
  expect(cut({ output: others }, 100).sent['output']).toMatchObject([
    { data: 'x'.repeat(100) },
    { data: 'x'.repeat(100) },
  ])
})

test('an event in which nothing is cut is sent as it is, and so is what is not stored', () => {
  const short = stored({ output: 'short' })
  expect(cutTexts(short, 1000)).toBe(short)
  const many = stored({ output: Array.from({ length: 20 }, () => 'short') })
  expect(cutTexts(many, 100)).toBe(many)
  const passing = { seq: undefined, type: 'AssistantDelta', json: JSON.stringify(long) } as never
  expect(cutRecord(passing, 10)).toBe(passing)
  expect(cutRecord(stored({ output: long }, { cursor: 'c' }), 100)).toMatchObject({ seq: 3, cursor: 'c' })
  expect(cutRecord(stored({ output: long }), 100)).not.toHaveProperty('cursor')
})

test('a part of an event is a text, a picture that browsers only show, or JSON', () => {
  const data = Buffer.from('picture').toString('base64')
  const image = (media_type: string) => ({ type: 'image', media_type, data })
  const types = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
  const event = { 'a/b~c': 'text', list: [1, null], images: [...types, 'image/svg+xml'].map(image), '~1': 'tilde' }
  const at = (pointer: string) => partAt(event as never, pointer)
  expect(at('/a~1b~0c')).toEqual({ mediaType: 'text/plain; charset=utf-8', content: 'text' })
  expect(at('/~01')).toMatchObject({ content: 'tilde' })
  for (const [index, mediaType] of [...types, 'application/octet-stream'].entries())
    expect(at(`/images/${index}`)).toEqual({ mediaType, content: Buffer.from('picture') })
  expect(at('/list')).toEqual({ mediaType: 'application/json; charset=utf-8', content: '[1,null]' })
  expect(at('/list/1')).toMatchObject({ content: 'null' })
  expect(at('')).toMatchObject({ content: JSON.stringify(event) })
  for (const nowhere of ['list', '/none', '/list/2', '/list/1/x', '/toString', '/a~1b~0c/length'])
    expect(at(nowhere), nowhere).toBeUndefined()
})
