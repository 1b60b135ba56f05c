/** Calls operations by their id: from typed parameters to a request, from a response to a typed reply. */
import { AgentServerError } from './agent-server-error.ts'
import { OPERATIONS } from '../operations/operations.ts'
import type { BodyOf, OperationId, ParamsFor, QueryFor, ReplyOf } from '../operations/operations.ts'
import { connectionError, foreign, startOf } from './response-error.ts'
import type { RequestContent, Transport } from './transport.ts'
import type { PathParams } from './url.ts'
import { pathOf, queryOf } from './url.ts'

/** What every method accepts. */
export type CallOptions = {
  /** Aborts the request and its repetitions. */
  readonly signal?: AbortSignal | undefined
  /** Replaces the key that the client generates for requests that the server executes once for each key. */
  readonly idempotencyKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** What one operation accepts. Fields that can be empty can be left out. */
export type CallInput<Id extends OperationId> = OptionalField<'params', ParamsFor<Id>> &
  OptionalField<'query', QueryFor<Id>> &
  OptionalField<'body', BodyOf<Id>>
type OptionalField<Name extends string, Type> = unknown extends Type
  ? unknown
  : [Type] extends [undefined]
    ? unknown
    : {} extends Type
      ? { readonly [K in Name]?: Type | undefined }
      : { readonly [K in Name]: Type }

/** A request whose body is not JSON, or whose response is read by the caller. */
export type RawInput = {
  readonly params?: PathParams | undefined
  readonly query?: object | undefined
  readonly content?: RequestContent | undefined
}

export class Api {
  readonly transport: Transport

  constructor(transport: Transport) {
    this.transport = transport
  }

  /** Returns the reply as JSON; undefined for a response without content. */
  async call<Id extends OperationId>(id: Id, input: CallInput<Id>, options: CallOptions = {}): Promise<ReplyOf<Id>> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what each `CallInput` consists of
    const { params, query, body } = input as { params?: PathParams; query?: object; body?: unknown }
    if (!OPERATIONS[id].sendsJson) return await this.callRaw(id, { params, query }, options)
    const headers = { 'content-type': 'application/json', ...options.headers }
    return await this.callRaw(id, { params, query, content: JSON.stringify(body ?? {}) }, { ...options, headers })
  }

  /** The same with content that is not JSON. */
  async callRaw<Id extends OperationId>(id: Id, input: RawInput, options: CallOptions = {}): Promise<ReplyOf<Id>> {
    return await this.send(id, input, options, jsonOf)
  }

  /** Returns what `read` makes of the response. Errors of `read` that are `AgentServerError`s repeat the request, too. */
  send<T>(
    id: OperationId,
    { params, query = {}, content }: RawInput,
    options: CallOptions,
    read: (response: Response) => T | Promise<T>,
  ): Promise<T> {
    const { method, route, isKeyed } = OPERATIONS[id]
    const key = isKeyed ? (options.idempotencyKey ?? randomKey()) : undefined
    const request = {
      method,
      path: pathOf(route, params) + queryOf(query),
      headers: { ...options.headers, ...(key !== undefined && { 'idempotency-key': key }) },
      body: content,
      signal: options.signal,
      isRepeatable: isKeyed || (method !== 'POST' && method !== 'DELETE'),
    }
    return this.transport.send(request, read).catch((error: unknown) => {
      throw isMissingRoute(error) ? missingOperation(id, error) : error
    })
  }
}

const isMissingRoute = (error: unknown): error is AgentServerError =>
  error instanceof AgentServerError && (error.code === 'not_found' || error.code === 'method_not_allowed')

function missingOperation(id: OperationId, cause: AgentServerError): AgentServerError {
  const { code, status, details, message } = cause
  const why = `The server has no operation ${id}. Update it if it is older than this client, or correct its URL.`
  return new AgentServerError(code, `${why} It says: ${message}`, { status, details, cause })
}

async function jsonOf(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined
  // The page of a proxy or of a login.
  if (/^text\/html\b/i.test(response.headers.get('content-type') ?? ''))
    throw foreign(response, await startOf(response))
  const text = await textOf(response)
  try {
    return JSON.parse(text)
  } catch {
    throw foreign(response, text)
  }
}

/** Rejects with an `AgentServerError` if the connection is lost. */
export function textOf(response: Response): Promise<string> {
  return response.text().catch((error: unknown) => {
    throw connectionError(error, response.url)
  })
}

/** Does without `crypto.randomUUID`: browsers have it only on pages that were loaded over HTTPS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
