/** Parses what a request brings: JSON bodies and no others, by the schemas of its route. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifySchemaCompiler, FastifyServerOptions } from 'fastify'
import { validatorCompiler } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import { Problem } from '../../contract/problem.ts'
import { refuseComplexJson } from '../../lib/json/untrusted-json.ts'

/** Any type but these gets 415. An empty body counts as absent: clients send the header by default. */
export function acceptJsonOnly(app: FastifyInstance, types: readonly string[] = ['application/json']): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser([...types], { parseAs: 'buffer' }, (request, body, callback) => {
    // Decoded, each wrong byte would become the same character.
    if (typeof body !== 'string' && !isUtf8(body)) return callback(notUtf8())
    const text = body.toString()
    if (text.length === 0) return callback(null, undefined)
    try {
      refuseComplexJson(text)
    } catch (error) {
      return callback(
        new Problem('invalid_request', `The body ${error instanceof Error ? error.message : 'is too complex'}.`, {
          cause: error,
        }),
      )
    }
    void parse(request, text, (error, value) => (error ? callback(problemOf(text)) : callback(null, value)))
  })
}

/** Parses again for the position: the framework keeps no error of the parser. */
function problemOf(text: string): Problem {
  try {
    JSON.parse(text)
  } catch (cause) {
    // The message has only the position: the rest of the sentence can quote the body.
    const position = /\((line \d+ column \d+)\)$/.exec(cause instanceof Error ? cause.message : '')?.[1]
    const where = position === undefined ? '' : ` at ${position}`
    const message = `The body is not valid JSON${where}. JSON has double quotes, no comma after the last element, and no comments.`
    return new Problem('invalid_request', message, { cause })
  }
  return new Problem('invalid_request', 'The body has a field __proto__ or constructor.prototype. Leave it out.')
}

const notUtf8 = () =>
  new Problem('invalid_request', 'The body is not UTF-8, as JSON is. Encode it, then send it again.')

/** Fastify passes `null` for a missing body; our schemas treat it as optional, not null. */
const compileValidator: FastifySchemaCompiler<z.ZodType> = (route) => {
  const validate = validatorCompiler(route)
  return route.httpPart === 'body' ? (data) => validate(data ?? undefined) : validate
}

/**
 * Bodies and queries are parsed by their zod schemas; responses are created by us and sent without validation. They are
 * an option, because Fastify would otherwise load its own compilers first, which are half a megabyte.
 */
export const SCHEMA_CONTROLLER: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: {
    // @ts-expect-error -- Fastify's types know the validators of ajv only.
    buildValidator: () => compileValidator,
    buildSerializer: () => () => JSON.stringify,
  },
}
