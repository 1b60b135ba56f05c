/** openapi/openapi.json is what the routes say, and fit to generate clients from. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeApi } from '../../scripts/openapi.ts'

const committed = readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')

type Operation = {
  operationId?: string
  summary?: string
  tags?: string[]
  responses: Record<string, { content?: Record<string, { schema?: object }> }>
}
const document = JSON.parse(committed) as {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: object }
}
const operations = Object.entries(document.paths).flatMap(([path, methods]) => {
  return Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)
})

test('is what the routes say; after a change run: npm run openapi', async () => {
  expect(await describeApi()).toBe(committed)
})

test.each(operations)('%s has a name, a summary, a tag and a schema for every answer', (_route, operation) => {
  expect(operation).toMatchObject({
    operationId: expect.stringMatching(/^[a-z][A-Za-z]+$/),
    summary: expect.any(String),
    tags: [expect.any(String)],
  })
  for (const [status, { content }] of Object.entries(operation.responses)) {
    if (status !== '204') expect(Object.values(content ?? {})[0]?.schema, status).toBeTypeOf('object')
  }
  expect(Object.keys(operation.responses)[0]).toMatch(/^2/)
  expect(Object.keys(operation.responses).some((status) => status.startsWith('4'))).toBe(true)
})

test('what is delivered to callbacks is described as a webhook, with its headers, its body and what answers mean', () => {
  const { post } = document.webhooks['event']!
  expect(post).toMatchObject({
    tags: ['callbacks'],
    security: [],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/WebhookBody' } } },
    },
    responses: { 204: { description: expect.stringContaining('Any 2xx') } },
  })
  const headers = (post as unknown as { parameters: { name: string; in: string; required: boolean }[] }).parameters
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    expect(headers).toContainEqual(expect.objectContaining({ name, in: 'header', required: true }))
})

test('operation ids are unique', () => {
  const ids = operations.map(([, operation]) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('refers to nothing that is not in it', () => {
  const refs = [...committed.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]!)
  expect(refs.length).toBeGreaterThan(operations.length)
  expect(new Set(refs)).toEqual(new Set(Object.keys(document.components.schemas)))
})
