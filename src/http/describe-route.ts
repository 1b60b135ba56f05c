/** What the description of every route has in common: tag, operation id, summary, and the errors it may answer. */
import type { z } from 'zod'
import type { ProblemCode } from '../contract/problem.ts'
import { ErrorBody, PROBLEMS } from '../contract/problem.ts'

/** What any route behind the key may answer. */
const EVERYWHERE: readonly ProblemCode[] = ['invalid_request', 'unauthorized', 'internal', 'unavailable']

type Description = { tags: string[]; operationId: string; summary: string; errors: readonly ProblemCode[] }

/** `errors` become responses of the OpenAPI document, by status; at run time they cost nothing. */
export function describeRoute(tag: string) {
  return (operationId: string, summary: string, errors: readonly ProblemCode[] = []): Description => {
    return { tags: [tag], operationId, summary, errors: [...EVERYWHERE, ...errors] }
  }
}

/** The error responses of a route, by status, each telling its codes. */
export function errorResponses(errors: readonly ProblemCode[]): Record<number, z.ZodType> {
  const byStatus = Map.groupBy(errors, (code) => PROBLEMS[code])
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [status, ErrorBody.describe(codes.map((code) => `\`${code}\``).join(', '))]),
  )
}
