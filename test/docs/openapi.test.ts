/** openapi/openapi.json is what the routes say, and fit to generate clients from. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { describeApi } from '../../scripts/openapi.ts'

const committed = readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')

type Operation = {
  operationId?: string
  summary?: string
  tags?: string[]
  parameters?: { name: string; schema: object }[]
  responses: Record<string, { content?: Record<string, { schema?: object }> }>
}
const document = JSON.parse(committed) as {
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: object }
}
const operations = Object.entries(document.paths).flatMap(([path, methods]) => {
  return Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)
})

test('matches the routes; after a change run: npm run openapi', async () => {
  expect(await describeApi()).toBe(committed)
})

test.each(operations)('%s has a name, a summary, a tag and a schema for every answer', (route, operation) => {
  expect(operation).toMatchObject({
    operationId: expect.stringMatching(/^[a-z][A-Za-z]+$/),
    summary: expect.any(String),
    tags: [expect.any(String)],
  })
  for (const [status, { content }] of Object.entries(operation.responses)) {
    const isEmpty = status === '204' || status === '304' || route.startsWith('HEAD ')
    if (!isEmpty) expect(Object.values(content ?? {})[0]?.schema, status).toBeTypeOf('object')
  }
  expect(Object.keys(operation.responses)[0]).toMatch(/^2/)
  expect(Object.keys(operation.responses).some((status) => status.startsWith('4'))).toBe(true)
})

test('callback deliveries are described as a webhook, with headers, body and the meaning of responses', () => {
  const { post } = document.webhooks['event']!
  expect(post).toMatchObject({
    tags: ['webhooks'],
    security: [],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/WebhookBody' } } },
    },
    responses: {
      '2XX': expect.anything(),
      '4XX': { description: expect.stringContaining('410') },
      '5XX': expect.anything(),
    },
  })
  const headers = (post as unknown as { parameters: { name: string; in: string; required: boolean }[] }).parameters
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    expect(headers).toContainEqual(expect.objectContaining({ name, in: 'header', required: true }))
})

test('operation ids are unique', () => {
  const ids = operations.map(([, operation]) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('has no dangling reference', () => {
  const refs = [...committed.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]!)
  expect(refs.length).toBeGreaterThan(operations.length)
  // For clients that read a stream themselves.
  expect(new Set([...refs, 'StreamFrame'])).toEqual(new Set(Object.keys(document.components.schemas)))
})

test('every area of an operation has a description', () => {
  for (const tag of new Set(operations.flatMap(([, operation]) => operation.tags!)))
    expect(document.tags.find(({ name }) => name === tag)?.description, tag).toMatch(/\.$/)
})

test('every schema that accepts anything describes its content', () => {
  const weak: string[] = []
  const walk = (schema: unknown, path: string, owner: string | undefined): void => {
    if (typeof schema !== 'object' || schema === null) return
    const {
      description = owner,
      properties,
      additionalProperties,
      items,
      anyOf,
      oneOf,
      allOf,
      ...own
    } = schema as Schema
    const isTyped = [anyOf, oneOf, allOf].some(Boolean) || ['type', '$ref', 'enum', 'const'].some((word) => word in own)
    if (!isTyped && description === undefined) weak.push(path)
    if (own.type === 'array' && items === undefined) weak.push(path)
    if (own.type === 'object' && !properties && additionalProperties === undefined && description === undefined)
      weak.push(path)
    for (const [name, inner] of Object.entries(properties ?? {})) walk(inner, `${path}.${name}`, undefined)
    walk(items, `${path}[]`, description)
    walk(additionalProperties, `${path}.*`, description)
    for (const [at, inner] of [anyOf, oneOf, allOf].flatMap((some) => some ?? []).entries())
      walk(inner, `${path}|${at}`, description)
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) walk(schema, name, undefined)
  for (const [route, { parameters = [], responses }] of operations) {
    for (const { name, schema } of parameters) walk(schema, `${route} ${name}`, undefined)
    for (const [status, { content = {} }] of Object.entries(responses))
      for (const media of Object.values(content)) walk(media.schema, `${route} ${status}`, undefined)
  }
  expect(weak).toEqual([])
})

type Schema = {
  type?: string
  description?: string
  properties?: Record<string, object>
  additionalProperties?: object
  items?: object
  anyOf?: object[]
  oneOf?: object[]
  allOf?: object[]
}

test('the main requests and responses have examples that match their schemas', () => {
  const withExamples = [...z.globalRegistry._idmap].filter(
    ([id]) => 'examples' in (document.components.schemas[id] ?? {}),
  )
  expect(withExamples.map(([id]) => id)).toEqual(
    expect.arrayContaining(['CreateConversation', 'Conversation', 'PostMessage', 'RunRequest', 'RunOutcome', 'Info']),
  )
  for (const [id, schema] of withExamples) {
    for (const example of (z.globalRegistry.get(schema)?.['examples'] ?? []) as unknown[])
      expect(z.safeParse(schema, example).error, id).toBeUndefined()
  }
})

test('a stream is described as the data of its frames, distinguished by type', () => {
  const stream = document.paths['/conversations/{id}/events/stream']!['get']!
  expect(stream.responses['200']?.content).toEqual({
    'text/event-stream': { schema: { $ref: '#/components/schemas/StreamEvent' } },
  })
})
