/** What responses carry besides their schema: descriptions, headers, the types of files, and examples of errors. */
import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { PROBLEMS } from '../../src/contract/problem.ts'
import type { JsonObject } from './json.ts'

/** Each response says what it means: an error its codes, the others the schema's own words or the name of the status. */
export function describeResponses(response: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(response).map(([status, schema]) => [status, describeOne(status, schema)]))
}

function describeOne(status: string, schema: unknown): unknown {
  // Nothing is sent with a 204 or a 304.
  if (!(schema instanceof z.ZodType) || schema instanceof z.ZodUndefined) return schema
  const description = schema.description ?? STATUS_CODES[status] ?? status
  return { description, content: { 'application/json': { schema } } }
}

/** The description of an error response lists its codes. */
export function examplesOf(description: string): JsonObject | undefined {
  const codes = [...description.matchAll(/`(\w+)`/g)].map(([, code]) => code!).filter((code) => code in PROBLEMS)
  if (codes.length === 0) return undefined
  return Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]))
}

/** An example of each code that is used, in the words of the documentation. */
export function errorExamples(used: ReadonlySet<string>): JsonObject {
  const meanings = readMeanings()
  const codes = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => used.has(code))
  return Object.fromEntries(
    codes.map((code) => [code, { summary: code, value: { error: code, message: meanings.get(code) ?? code } }]),
  )
}

/** Code -> what happened and what to do, from the table in docs/errors.md, without its markup and its notes in brackets. */
function readMeanings(): Map<string, string> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8')
  const rows = page.matchAll(/^\| `(\w+)` \| \d+ \| (.*) \|$/gm)
  return new Map([...rows].map(([, code, text]) => [code!, text!.replaceAll(/ \([^)]*\)/g, '').replaceAll('`', '')]))
}

const text = (description: string, required = true) => ({ description, required, schema: { type: 'string' } })

/** `components.headers`: each is described once. */
export const HEADERS = {
  'x-request-id': text('Id of the request, as in the log of the server. A request can set its own.', false),
  'WWW-Authenticate': text('`Bearer realm="agent-server"`'),
  'Retry-After': { description: 'Seconds to wait.', required: false, schema: { type: 'integer', format: 'int32' } },
  Location: text('Path of what was created.'),
  ETag: text('Entity tag of the file, for `If-Match` and `If-None-Match`. Directories have none.', false),
  'Last-Modified': text('Modification time of the file.', false),
  'Content-Disposition': text('Always `attachment`, with the name of the file.'),
  'Accept-Ranges': text('`bytes` for files; absent for archives.', false),
  'Content-Range': text('The range that is sent, and the size of the file.'),
  'x-firehose-cursor': text('Cursor at which the stream begins, for a reader that is cut off before its first event.'),
} as const
type Header = keyof typeof HEADERS

const BY_STATUS: Readonly<Record<string, readonly Header[]>> = {
  401: ['WWW-Authenticate'],
  416: ['Content-Range'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const DOWNLOAD: readonly Header[] = ['ETag', 'Last-Modified', 'Content-Disposition', 'Accept-Ranges']

const BY_OPERATION: Readonly<Record<string, Readonly<Record<string, readonly Header[]>>>> = {
  createConversation: { 201: ['Location'] },
  forkConversation: { 201: ['Location'] },
  postEvent: { 201: ['Location'] },
  postTask: { 201: ['Location'] },
  createReplay: { 201: ['Location'] },
  createCallback: { 201: ['Location'] },
  runCommand: { 202: ['Location'] },
  getFile: { 200: DOWNLOAD, 206: [...DOWNLOAD, 'Content-Range'], 304: ['ETag', 'Last-Modified'] },
  headFile: { 200: DOWNLOAD, 304: ['ETag', 'Last-Modified'] },
  streamFirehose: { 200: ['x-firehose-cursor'] },
  putFile: { 200: ['ETag'], 201: ['ETag'] },
}

/** Returns the headers of one response. */
export function headersOf(status: string, operationId: string): JsonObject {
  const names = ['x-request-id', ...(BY_STATUS[status] ?? []), ...(BY_OPERATION[operationId]?.[status] ?? [])]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
