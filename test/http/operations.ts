/** The operations of the OpenAPI document, and how each is asked as the document says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scope } from '../../src/contract/key.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import type { Schema } from './samples.ts'
import { sampleOf } from './samples.ts'

type Parameter = { name: string; in: string; required?: boolean; schema: Schema }

type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: object }> }>
  security?: unknown[]
  'x-required-scopes'?: Scope[]
}

export const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

export const METHODS = ['get', 'put', 'post', 'delete', 'patch']
export const operations = Object.entries(document.paths).flatMap(([path, methods]) => {
  return Object.entries(methods).map(([method, operation]) => {
    return { name: `${method.toUpperCase()} ${path}`, path, method: method.toUpperCase(), operation }
  })
})
export type Case = (typeof operations)[number]

export const isPublic = ({ operation }: Case) => operation.security?.length === 0
export const parametersIn = ({ operation }: Case, place: string) =>
  (operation.parameters ?? []).filter((one) => one.in === place)
export const bodyTypes = ({ operation }: Case) => Object.keys(operation.requestBody?.content ?? {})
export const takesJson = (one: Case) => bodyTypes(one).includes('application/json')

/** More than Linux counts to. */
const NO_PID = '4194305'

/** The path with what the document says its parameters are; those that are no ids get a word. */
export function pathOf({ path, operation }: Case, id: string, other: string = uuid7()): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'id') return id
    const parameter = operation.parameters?.find((one) => one.name === name)
    if (parameter?.schema.type === 'integer') return NO_PID
    return parameter !== undefined && isUuid(parameter.schema) ? other : 'WORD'
  })
}

const isUuid = ({ $ref }: Schema) => $ref === '#/components/schemas/Uuid'

/** Of something in a conversation that has an id or a name of its own. */
export const isOfThing = (one: Case) => parametersIn(one, 'path').some(({ name }) => name !== 'id')

const sample = (schema: Schema) => sampleOf(schema, document.components.schemas)

/** Of a body, what the document says; a route that takes any bytes gets some. */
export function validBody(one: Case): unknown {
  if (bodyTypes(one).length === 0) return undefined
  return takesJson(one) ? sample(one.operation.requestBody!.content['application/json']!.schema) : 'some bytes'
}

export const validHeaders = (one: Case): Record<string, string> =>
  bodyTypes(one).length > 0 && !takesJson(one) ? { 'content-type': 'application/octet-stream' } : {}

export function validQuery(one: Case): string {
  const required = parametersIn(one, 'query').filter((parameter) => parameter.required)
  return required.length
    ? `?${new URLSearchParams(required.map(({ name, schema }) => [name, String(sample(schema))])).toString()}`
    : ''
}
