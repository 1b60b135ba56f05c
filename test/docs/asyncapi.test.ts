/** openapi/asyncapi.json is what the schemas say; that it is AsyncAPI is for `npm run check:spec`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeChannels } from '../../scripts/asyncapi.ts'
import { some } from '../support/some.ts'

const committed = readFileSync(join(import.meta.dirname, '../../openapi/asyncapi.json'), 'utf8')
const document = JSON.parse(committed) as {
  channels: Record<string, { address: string | null; messages: object }>
  components: { schemas: Record<string, object>; messages: object }
}

test('matches the schemas; after a change run: npm run openapi', () => {
  expect(describeChannels()).toBe(committed)
})

test('has the event streams, the sockets and the callbacks', () => {
  expect(Object.values(document.channels).map(({ address }) => address)).toEqual([
    '/conversations/{id}/events/stream',
    '/conversations/{id}/ws',
    '/conversations/ws',
    '/firehose',
    '/firehose',
    null,
  ])
})

test('has no dangling reference and no unused component', () => {
  for (const part of ['schemas', 'messages'] as const) {
    const refs = [...committed.matchAll(new RegExp(`"#/components/${part}/([^"/]+)"`, 'g'))].map((match) => match[1]!)
    expect(new Set(some('references', refs))).toEqual(new Set(Object.keys(document.components[part])))
  }
})
