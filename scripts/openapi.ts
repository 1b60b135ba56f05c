/** Describes the API from the schemas of its routes; run as a program it writes `openapi/openapi.json`, and `asyncapi.json` next to it. */
import { mkdirSync, writeFileSync } from 'node:fs'
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
import { TAGS, errorResponses } from '../src/http/openapi/describe-route.ts'
import { scopesOf } from '../src/http/guards/route-scopes.ts'
import { registerRoutes } from '../src/http/register-routes.ts'
import { describeChannels } from './asyncapi.ts'
import { DESCRIPTIONS, PARAMETERS } from './openapi/descriptions.ts'
import type { Json, JsonObject, Schemas } from './openapi/json.ts'
import { markedRegistry, nameSchemas } from './openapi/names.ts'
import { HEADERS, describeResponses, errorExamples, examplesOf, headersOf } from './openapi/responses.ts'
import { discriminate, shapePaths, shapeSchemas, shareFormats } from './openapi/shape-schemas.ts'

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
        title: manifest.name,
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
            description:
              'The master key of the server, OPENHANDS_MASTER_KEY, or an API key with the scopes that `x-required-scopes` names. Must not be in a URL.',
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
  const { components, ...rest } = app.swagger() as unknown as Described
  await app.close()
  const document = withWebhook({ ...rest, ...finish(rest.paths, components, optionalBodies) })
  return `${JSON.stringify(document, null, 2)}\n`
}

type Described = { paths: JsonObject; components: JsonObject & { schemas: Schemas } }

type Finished = { paths: Record<string, Record<string, Operation>>; components: object }

/** Turns what the plugin wrote into what generators read well. */
function finish(
  rawPaths: JsonObject,
  components: Described['components'],
  optionalBodies: ReadonlySet<string>,
): Finished {
  const named = nameSchemas(shapePaths(rawPaths), shapeSchemas(components.schemas), EXTRA)
  const schemas = { ...named.schemas }
  const share = (value: Json) => discriminate(shareFormats(value, schemas), named.schemas)
  for (const [name, schema] of Object.entries(named.schemas)) schemas[name] = share(schema)
  const paths = share(named.paths) as Record<string, Record<string, Operation>>
  for (const methods of Object.values(paths))
    for (const [method, operation] of Object.entries(methods)) finishOperation(method, operation, optionalBodies)
  const codes = new Set([...JSON.stringify(paths).matchAll(/components\/examples\/(\w+)/g)].map(([, code]) => code!))
  const sorted = Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return { paths, components: { ...components, schemas: sorted, headers: HEADERS, examples: errorExamples(codes) } }
}

/** The schemas that no route uses, but clients that read a stream themselves. */
const EXTRA = ['StreamFrame']

function finishOperation(method: string, operation: Operation, optionalBodies: ReadonlySet<string>): void {
  // The plugin tells the HEAD of a route by its GET's id.
  operation.operationId = operation.operationId.replace(/-head$/, '')
  operation.description ??= DESCRIPTIONS[operation.operationId] ?? ''
  // It knows required bodies only.
  if (optionalBodies.has(operation.operationId) && operation.requestBody) allowNoBody(operation.requestBody)
  for (const parameter of operation.parameters ?? []) {
    const { description = PARAMETERS[parameter.name] } = parameter
    if (description !== undefined) parameter.description = description
    if (parameter.schema?.type === 'array') Object.assign(parameter, { style: 'form', explode: true })
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    // Nothing is sent in answer to HEAD.
    if (method === 'head') delete response.content
    response.headers = headersOf(status, operation.operationId)
    const json = response.content?.['application/json']
    const examples = status < '400' ? undefined : examplesOf(response.description)
    if (json && examples) json.examples = examples
  }
}

const INTRODUCTION = `Conversations with AI agents: create one, send messages, start the agent, follow its events.

Every error response is an \`ErrorBody\`; its \`error\` is a code of a closed list. An unknown path is 404
\`not_found\`. A known path with another method is 405 \`method_not_allowed\` with an \`Allow\` header.
Every response has an \`x-request-id\`, which is also in the log of the server. A request can set its own.

Lists return \`{items, next_page_id}\`. Pass \`next_page_id\` as \`page_id\` until it is null.
\`/asyncapi.json\` describes WebSockets, event streams and deliveries to callbacks in more detail.`

type Body = { required?: boolean; content?: Record<string, { schema?: object }> }

type Answer = { description: string; headers?: object; content?: Record<string, { examples?: object }> }

type Operation = {
  operationId: string
  tags?: string[]
  callbacks?: object
  description?: string
  requestBody?: Body
  parameters?: { name: string; description?: string; schema?: { type?: unknown } }[]
  responses: Record<string, Answer>
}

/** A body that may be absent may also be `null`, as some clients send it then. */
function allowNoBody(body: Body): void {
  body.required = false
  const json = body.content?.['application/json']
  if (json?.schema) json.schema = { oneOf: [json.schema, { type: 'null' }] }
}

/** No route is called, so nothing behind one is needed; only limits are looked at when routes are registered. */
const NEVER_CALLED = { manager: undefined, info: { limits: {} } } as unknown as Parameters<typeof registerRoutes>[1]

type Noted = { errors?: readonly ProblemCode[]; response?: object }

/** Adds what `describe-route.ts` notes on a route: its errors; and that a public one asks for no key. */
function describeWith(toJsonSchema: SwaggerTransform): SwaggerTransform {
  return (document) => {
    const { errors = [], ...schema } = (document.schema ?? {}) as Noted
    const isPublic = document.route.config?.public === true
    const kind = { isPublic, hasBody: 'body' in schema }
    const response = describeResponses({ ...errorResponses(errors, kind), ...schema.response })
    const described = toJsonSchema(nameWildcard({ ...document, schema: { ...schema, response } }))
    if (isPublic) return { ...described, schema: { ...described.schema, security: [] } }
    const scopes = scopesOf([document.route.method].flat()[0] ?? '', document.url)
    return { ...described, schema: { ...described.schema, 'x-required-scopes': scopes } }
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

/** What receivers of callbacks have to answer, described as if it were a route of ours, so that its schemas are named with all others. */
const DELIVERY = '/delivery'

function registerDelivery(app: FastifyInstance): void {
  const schema = {
    tags: ['webhooks'],
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

/** The delivery, as a webhook of the server, and where it begins: as a callback of the operation that asks for it. */
function withWebhook({ paths: all, components, ...rest }: Finished & { tags?: { name: string }[] }) {
  const { [DELIVERY]: delivery, ...paths } = all
  const post = { ...delivery!['post']!, security: [], responses: DELIVERY_RESPONSES }
  const create = paths['/conversations/{id}/callbacks']!['post']!
  create.callbacks = { event: { '{$request.body#/url}': { post: { ...post, operationId: 'onEvent' } } } }
  const used = new Set(Object.values(all).flatMap((path) => Object.values(path).flatMap(({ tags = [] }) => tags)))
  const tags = rest.tags?.filter(({ name }) => used.has(name))
  return { ...rest, tags, paths, webhooks: { event: { post } }, components }
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
