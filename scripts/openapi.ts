/** Describes the API from the schemas of its routes; run as a program it writes `openapi/openapi.json`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import swagger from '@fastify/swagger'
import type { SwaggerTransform } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  validatorCompiler,
} from 'fastify-type-provider-zod'
import { z } from 'zod'
import manifest from '../package.json' with { type: 'json' }
import { WebhookBody, WebhookHeaders } from '../src/contract/callback.ts'
import type { ProblemCode } from '../src/contract/problem.ts'
import { describeRoute, errorResponses } from '../src/http/describe-route.ts'
import { registerRoutes } from '../src/http/server.ts'
import type { HttpDeps } from '../src/http/server.ts'
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
      info: { title: 'Agent-SDK API', version: manifest.version, description: manifest.description },
      components: { securitySchemes: { BearerAuth: { type: 'http', scheme: 'bearer' } } },
      security: [{ BearerAuth: [] }],
    },
    transform: describeWith(createJsonSchemaTransform(schemas)),
    transformObject: createJsonSchemaTransformObject(schemas),
  })
  const optionalBodies = new Set<string>()
  app.addHook('onRoute', ({ schema }) => {
    if (schema?.operationId && schema.body instanceof z.ZodType && schema.body.isOptional())
      optionalBodies.add(schema.operationId)
  })
  await registerRoutes(app, NEVER_CALLED)
  describeWebhook(app)
  await app.ready()
  const document = withWebhook(nameSchemas(app.swagger()))
  await app.close()
  for (const operation of Object.values(document.paths ?? {}).flatMap((path) => Object.values<Operation>(path))) {
    // The plugin knows required bodies only.
    if (optionalBodies.has(operation.operationId ?? '') && operation.requestBody) operation.requestBody.required = false
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

/** Described as the routes are, and then put where what the server itself sends belongs. */
const WEBHOOK_PATH = '/webhook'

function describeWebhook(app: FastifyInstance): void {
  const describe = describeRoute('callbacks')
  const { errors: _, ...said } = describe('receiveEvent', 'What a callback receives for each event')
  const schema = {
    ...said,
    description:
      'Sent to the URL of a callback, in order and at least once, signed as Standard Webhooks has it: verify `webhook-signature` with the secret of the callback, and tell what comes twice by `webhook-id`.',
    headers: WebhookHeaders,
    body: WebhookBody,
    response: {
      204: z
        .undefined()
        .describe(
          'Any 2xx: received. 410: disable the callback. 400, 413, 415 and 422: this event is refused, and passed over after 8 attempts. Anything else, and no answer within 30 s: try again later; `Retry-After` is honoured, redirects are not followed.',
        ),
    },
  }
  app.post(WEBHOOK_PATH, { config: { public: true }, schema }, () => undefined)
}

function withWebhook<T extends { paths?: object }>({ paths, ...document }: T) {
  const { [WEBHOOK_PATH]: event, ...rest } = paths as Record<string, Record<string, Operation>>
  return { ...document, paths: rest, webhooks: { event } }
}

type Operation = { operationId?: string; requestBody?: { required?: boolean } }

/** No route is called, so nothing behind one is needed; only limits are looked at when routes are registered. */
const NEVER_CALLED = { manager: undefined, info: { limits: {} }, isReady: () => false } as unknown as HttpDeps

/** Adds what `describe-route.ts` notes on a route: its errors; and that a public one asks for no key. */
function describeWith(toJsonSchema: SwaggerTransform): SwaggerTransform {
  return (document) => {
    const { errors = [], ...schema } = (document.schema ?? {}) as { errors?: readonly ProblemCode[]; response?: object }
    const isPublic = document.route.config?.public === true
    const possible = isPublic ? errors.filter((code) => code !== 'unauthorized') : errors
    const response = describeResponses({ ...errorResponses(possible), ...schema.response })
    const described = toJsonSchema({ ...document, schema: { ...schema, response } })
    return isPublic ? { ...described, schema: { ...described.schema, security: [] } } : described
  }
}

/** Each response says what it means: an error its codes, the others the schema's own words or the name of the status. */
function describeResponses(response: Record<string, unknown>): Record<string, unknown> {
  const described = Object.entries(response).map(([status, schema]) => {
    if (!(schema instanceof z.ZodType) || status === '204') return [status, schema]
    const description = schema.description ?? STATUS_CODES[status] ?? status
    return [status, { description, content: { 'application/json': { schema } } }]
  })
  return Object.fromEntries(described)
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
}
