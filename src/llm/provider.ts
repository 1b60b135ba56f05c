/**
 * The seam between the loop that makes requests and the API of a provider: how a request is written, where it is sent,
 * how the stream of its answer is read, and what is tried when an endpoint refuses it.
 */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import type { ChunkReader } from './answer/chunk.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import type { LlmRequest } from './llm.ts'
import type { Post } from './model-connection.ts'
import type { Fetch } from './connection/pooled-fetch.ts'
import { withMessages } from './request/request-parts.ts'

/**
 * The API of a provider. `Dialect` is what differs between the endpoints of this API; it is a value without functions.
 * Nothing here throws.
 */
export interface Provider<Dialect extends object> {
  /** The name in error messages. */
  readonly title: string
  connect(endpoint: Endpoint, fetch: Fetch | undefined): Promise<Post>
  createWriter(config: LlmConfig, endpoint: Endpoint): RequestWriter<Dialect>
  firstDialect(endpoint: Endpoint): Dialect
  /** Returns the dialects to try next when an endpoint refused this one; the most likely first. */
  dialectsAfterRefusal(dialect: Dialect, complaint: string, request: LlmRequest): readonly Dialect[]
  /** Returns a reader for one answer. */
  readonly createReader: () => ChunkReader
}

/** Returns the body of a request. Equal requests in the same dialect have the same bytes. */
export type RequestWriter<Dialect extends object> = (request: LlmRequest, dialect: Dialect) => Buffer

/** What was learnt about endpoints: the dialects they accept, by provider, URL and model. */
export type Dialects = Map<string, object>

/** How often one request is sent again because its endpoint uses another dialect: once for each possible difference. */
const MAX_LESSONS = 4

/** The forms of one request, tried one after the other until the endpoint accepts one. */
export interface RequestForms {
  /** The body of the current form. */
  readonly body: Buffer
  /** Continues with the next form after a refusal. Returns false if no form is left. */
  next(complaint: string): boolean
  /** Stores the current form's dialect: the endpoint accepted it. */
  keep(): void
}

/** Hides the dialect of a provider from its user. */
export type Adapter = Pick<Provider<object>, 'title' | 'createReader'> & {
  readonly connect: (fetch: Fetch | undefined) => Promise<Post>
  readonly formsOf: (request: LlmRequest) => RequestForms
}

export function createAdapter<Dialect extends object>(
  provider: Provider<Dialect>,
  config: LlmConfig,
  endpoint: Endpoint,
  dialects: Dialects,
): Adapter {
  const name = `${endpoint.provider} ${endpoint.baseUrl} ${endpoint.model}`
  const write = provider.createWriter(config, endpoint)
  return {
    title: provider.title,
    createReader: provider.createReader,
    connect: (fetch) => provider.connect(endpoint, fetch),
    formsOf(request) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- stored below under this name, which has the provider
      let dialect = (dialects.get(name) as Dialect | undefined) ?? provider.firstDialect(endpoint)
      let body = write(request, dialect)
      const refusedIds = new Set<string>()
      const { length } = request.messages
      return {
        get body() {
          return body
        },
        next(complaint) {
          refusedIds.add(JSON.stringify(dialect))
          if (refusedIds.size > MAX_LESSONS) return false
          const askedRequest = withMessages(request, length)
          for (const other of provider.dialectsAfterRefusal(dialect, complaint, askedRequest)) {
            if (refusedIds.has(JSON.stringify(other))) continue
            const otherBody = write(askedRequest, other)
            // A dialect that changes nothing in this request would be refused as well.
            if (otherBody.equals(body)) continue
            dialect = other
            body = otherBody
            return true
          }
          return false
        },
        keep: () => void dialects.set(name, dialect),
      }
    },
  }
}
