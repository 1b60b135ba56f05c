/** docs/api.md lists the routes of openapi/openapi.json and the sockets of openapi/asyncapi.json. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTable } from './tables.ts'

const ROOT = join(import.meta.dirname, '../..')
const readJson = (path: string): unknown => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))

type Operation = { responses: Record<string, unknown>; security?: unknown[] }
const { paths } = readJson('openapi/openapi.json') as { paths: Record<string, Record<string, Operation>> }
const { channels } = readJson('openapi/asyncapi.json') as {
  channels: Record<string, { address: string | null; bindings?: { ws?: object } }>
}

const rows = readTable(readFileSync(join(ROOT, 'docs/api.md'), 'utf8'))
const routeOf = (cell: string) => cell.replace('…', '/conversations/{id}')
const operations = Object.entries(paths).flatMap(([path, methods]) => {
  return Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)
})
const sockets = Object.values(channels).filter(({ bindings }) => bindings?.ws)

test('has a row for each route and socket, and no other', () => {
  expect(sockets.length).toBeGreaterThan(2)
  const expected = [...operations.map(([route]) => route), ...sockets.map(({ address }) => `WS ${address}`)]
  expect(rows.map(([cell = '']) => routeOf(cell)).toSorted()).toEqual(expected.toSorted())
})

test.each(operations)(
  'says how %s answers, 200 if nothing is said, and whether it needs the key',
  (route, operation) => {
    const [, about = ''] = rows.find(([cell = '']) => routeOf(cell) === route) ?? []
    const statuses = about.match(/\b[23]\d\d\b/g) ?? ['200']
    expect(statuses.toSorted()).toEqual(Object.keys(operation.responses).filter((status) => status < '400'))
    expect(about.includes('*Open.*')).toBe(operation.security?.length === 0)
  },
)
