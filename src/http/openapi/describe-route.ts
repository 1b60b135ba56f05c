/** Describes what every route has in common: tag, operation id, summary, and possible errors. */
import type { z } from 'zod'
import type { ProblemCode } from '../../contract/problem.ts'
import { ErrorBody, PROBLEMS } from '../../contract/problem.ts'

/** The areas of the API, in display order. */
export const TAGS = {
  conversations: 'Create, find, configure and delete conversations.',
  messages: 'Send messages to the agent and control its runs.',
  requests: 'List what waits for a user or a program, and answer it.',
  hooks: 'Register hooks that clients answer.',
  permissions: 'Set which tool calls need a decision, and refuse all that wait.',
  events: 'List, count and follow the events of a conversation.',
  callbacks: 'Deliver events to a URL, signed, in order and at least once.',
  webhooks: 'What the server sends to the URL of a callback.',
  files: 'Read and write files in the working directory of a conversation.',
  commands: 'Run commands in the shells of a conversation, and manage their processes.',
  secrets: 'Environment variables of the commands of a conversation. Values are write-only; only names are returned.',
  tasks: 'Queued work: runs of the agent, commands and Tickers.',
  replays: 'Do work of conversations once more in forks, with other models, and compare how it ends.',
  profiles: 'Named parts of create requests, for clients that choose one by its name.',
  keys: 'API keys with scopes, and tickets for streams in browsers.',
  server: 'Health, version, limits and metrics of the server.',
} as const

/** Errors of every route, and errors of the routes that require a key. */
const EVERYWHERE: readonly ProblemCode[] = [
  'invalid_request',
  'token_in_url',
  'expectation_failed',
  'headers_too_large',
  'internal',
  'unavailable',
  'storage_unavailable',
]
const BEHIND_THE_KEY: readonly ProblemCode[] = ['unauthorized', 'forbidden', 'too_many_attempts']
/** Errors of every route with a body. */
const WITH_BODY: readonly ProblemCode[] = ['body_too_large', 'unsupported_media_type', 'request_timeout']

type Description = { tags: string[]; operationId: string; summary: string; errors: readonly ProblemCode[] }

/** `errors` become responses of the OpenAPI document, by status; they have no run-time cost. */
export function describeRoute(tag: keyof typeof TAGS) {
  return (operationId: string, summary: string, errors: readonly ProblemCode[] = []): Description => {
    return { tags: [tag], operationId, summary, errors }
  }
}

type RouteKind = { readonly isPublic: boolean; readonly hasBody: boolean }

/** Returns the error responses of a route, by status, each with its codes: the route's own, and those of its kind. */
export function errorResponses(
  errors: readonly ProblemCode[],
  { isPublic, hasBody }: RouteKind,
): Record<number, z.ZodType> {
  const all = [...EVERYWHERE, ...(isPublic ? [] : BEHIND_THE_KEY), ...(hasBody ? WITH_BODY : []), ...errors]
  const byStatus = Map.groupBy(new Set(all), (code) => PROBLEMS[code])
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [status, ErrorBody.describe(codes.map((code) => `\`${code}\``).join(', '))]),
  )
}
