/** Describes the API from the schemas of its routes; run as a program it writes `openapi/openapi.json`, and `asyncapi.json` beside it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import swagger from '@fastify/swagger'
import type { SwaggerTransform } from '@fastify/swagger'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  validatorCompiler,
} from 'fastify-type-provider-zod'
import { z } from 'zod'
import manifest from '../package.json' with { type: 'json' }
import { WebhookBody, WebhookHeaders } from '../src/contract/callback.ts'
import type { ProblemCode } from '../src/contract/problem.ts'
import { TAGS, errorResponses } from '../src/http/describe-route.ts'
import { registerRoutes } from '../src/http/register-routes.ts'
import { describeChannels } from './asyncapi.ts'
import { markedRegistry, nameSchemas } from './openapi-names.ts'

/** The OpenAPI document as text: routes in the order they are registered, schemas by name, a newline at the end. */
export async function describeApi(): Promise<string> {
  const schemas = { schemaRegistry: markedRegistry(), zodToJsonConfig: { override: adjustSchema } }
  const app = Fastify()
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => JSON.stringify)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Agent-SDK API',
        version: manifest.version,
        summary: manifest.description,
        description: INTRODUCTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/', description: 'The server that returned this document.' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          BearerAuth: {
            type: 'http',
            scheme: 'bearer',
            description: 'The master key of the server, OPENHANDS_MASTER_KEY. Must not be in a URL.',
          },
        },
      },
      security: [{ BearerAuth: [] }],
    },
    transform: describeWith(createJsonSchemaTransform(schemas)),
    transformObject: createJsonSchemaTransformObject(schemas),
  })
  const optionalBodies = new Set<string>()
  app.addHook('onRoute', ({ schema }) => {
    // A form is read by its route and not by its schema, which therefore takes nothing for one.
    const isForm = schema?.consumes?.includes('multipart/form-data')
    if (schema?.operationId && schema.body instanceof z.ZodType && schema.body.isOptional() && !isForm)
      optionalBodies.add(schema.operationId)
  })
  await registerRoutes(app, NEVER_CALLED)
  registerDelivery(app)
  await app.ready()
  const document = withWebhook(nameSchemas(app.swagger()))
  await app.close()
  for (const operation of operationsOf(document)) {
    // The plugin tells the HEAD of a route by its GET's id.
    if (operation.operationId) operation.operationId = operation.operationId.replace(/-head$/, '')
    // It knows required bodies only.
    if (optionalBodies.has(operation.operationId ?? '') && operation.requestBody) operation.requestBody.required = false
  }
  const used = new Set(operationsOf(document).flatMap((operation) => operation.tags ?? []))
  const tags = document.tags?.filter(({ name }) => name === 'callbacks' || used.has(name))
  return `${JSON.stringify({ ...document, tags }, null, 2)}\n`
}

const INTRODUCTION = `Conversations with AI agents: create one, send messages, start the agent, follow its events.

Every error response is an \`Error\`; its \`error\` is a code of a closed list. An unknown path is 404
\`not_found\`. A known path with another method is 405 \`method_not_allowed\` with an \`Allow\` header.
Every response has an \`x-request-id\`, which is also in the log of the server. A request can set its own.

Lists return \`{items, next_page_id}\`. Pass \`next_page_id\` as \`page_id\` until it is null.
\`/asyncapi.json\` describes WebSockets, event streams and deliveries to callbacks in more detail.`

const operationsOf = (document: { paths?: object | undefined }): Operation[] =>
  Object.values(document.paths ?? {}).flatMap((path: object) =>
    Object.values<Operation>(path as Record<string, Operation>),
  )

type Operation = { operationId?: string; tags?: string[]; requestBody?: { required?: boolean } }

/** No route is called, so nothing behind one is needed; only limits are looked at when routes are registered. */
const NEVER_CALLED = { manager: undefined, info: { limits: {} } } as unknown as Parameters<typeof registerRoutes>[1]

/** Adds what `describe-route.ts` notes on a route: its errors; and that a public one asks for no key. */
function describeWith(toJsonSchema: SwaggerTransform): SwaggerTransform {
  return (document) => {
    const { errors = [], ...schema } = (document.schema ?? {}) as { errors?: readonly ProblemCode[]; response?: object }
    const isPublic = document.route.config?.public === true
    const kind = { isPublic, hasBody: 'body' in schema }
    const response = describeResponses({ ...errorResponses(errors, kind), ...schema.response })
    const described = toJsonSchema(nameWildcard({ ...document, schema: { ...schema, response } }))
    return isPublic ? { ...described, schema: { ...described.schema, security: [] } } : described
  }
}

/** What a route calls `*`, the rest of its path, is `path` to those who call it. */
function nameWildcard<T extends Parameters<SwaggerTransform>[0]>(document: T): T {
  const { params } = (document.schema ?? {}) as { params?: unknown }
  if (!document.url.endsWith('/*') || !(params instanceof z.ZodObject)) return document
  const { '*': path, ...others } = params.shape
  return {
    ...document,
    url: document.url.replace(/\*$/, ':path'),
    schema: { ...document.schema, params: z.strictObject({ ...others, path: path as z.ZodType }) },
  }
}

/** Each response says what it means: an error its codes, the others the schema's own words or the name of the status. */
function describeResponses(response: Record<string, unknown>): Record<string, unknown> {
  const described = Object.entries(response).map(([status, schema]) => {
    // Nothing is sent with a 204, a 304, or in answer to HEAD.
    if (!(schema instanceof z.ZodType) || schema instanceof z.ZodUndefined) return [status, schema]
    const description = schema.description ?? STATUS_CODES[status] ?? status
    const headers = HEADERS[status]
    return [status, { description, ...(headers && { headers }), content: { 'application/json': { schema } } }]
  })
  return Object.fromEntries(described)
}

/** What receivers of callbacks have to answer, described as if it were a route of ours, so that its schemas are named with all others. */
const DELIVERY = '/delivery'

function registerDelivery(app: FastifyInstance): void {
  const schema = {
    tags: ['callbacks'],
    operationId: 'receiveEvent',
    summary: 'An event of a conversation, delivered to a callback',
    description:
      'Sent to the URL of a callback, in order and at least once, signed according to Standard Webhooks. Verify `webhook-signature` with the secret of the callback, and detect duplicates by `webhook-id`.',
    headers: WebhookHeaders,
    body: WebhookBody,
  }
  app.post(DELIVERY, { schema }, () => undefined)
}

const DELIVERY_RESPONSES = {
  '2XX': { description: 'The event was delivered. The next one follows.' },
  '4XX': {
    description:
      '410: the callback is disabled. 400, 413, 415 and 422: the event counts as refused and is skipped after 8 attempts. Any other status: retried.',
  },
  '5XX': {
    description: 'Retried, as is a timeout after 30 s. `Retry-After` is honoured; redirects are not followed.',
  },
}

function withWebhook<T extends { paths?: Record<string, { post?: object } | undefined> | undefined }>(document: T) {
  const { [DELIVERY]: delivery, ...paths } = document.paths ?? {}
  const event = { post: { ...delivery?.post, security: [], responses: DELIVERY_RESPONSES } }
  const { components, ...rest } = { ...document, paths } as typeof document & { components?: object }
  return { ...rest, webhooks: { event }, components }
}

const RETRY_AFTER = { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } }

/** By status: what of the answer is not in its body. */
const HEADERS: Readonly<Record<string, object>> = {
  401: { 'WWW-Authenticate': { description: '`Bearer realm="agent-server"`', schema: { type: 'string' } } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
}

function adjustSchema({ zodSchema, jsonSchema }: Parameters<Override>[0]): void {
  // Zod describes what it returns as closed; but answers may grow fields, and clients ignore those they do not know.
  if (zodSchema instanceof z.ZodObject && !zodSchema.def.catchall) delete jsonSchema.additionalProperties
  // What tells the plugin that there is no body.
  if (zodSchema instanceof z.ZodUndefined) jsonSchema.type = 'null'
}

type Override = NonNullable<z.core.ToJSONSchemaParams['override']>

if (import.meta.main) {
  const folder = join(import.meta.dirname, '../openapi')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'openapi.json'), await describeApi())
  writeFileSync(join(folder, 'asyncapi.json'), describeChannels())
}
