/** The HTTP server in this process, in front of real conversations. */
import { PendingAuthorizations } from '../../src/mcp/oauth/pending-authorizations.ts'
import type { FastifyInstance } from 'fastify'
import { expect } from 'vitest'
import { ErrorBody } from '../../src/contract/problem.ts'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { ApiKeys } from '../../src/access/api-keys.ts'
import { createReplays } from '../replays/fixtures.ts'
import { StreamTickets } from '../../src/access/stream-tickets.ts'
import { createAuthenticator } from '../../src/http/guards/auth.ts'
import { Profiles } from '../../src/conversations/profiles/profiles.ts'
import { lazily } from '../../src/lib/lazily.ts'
import { KnownModels } from '../../src/conversations/known-models.ts'
import { createLoginSupport } from '../../src/wiring/login-support.ts'
import { createHttpServer } from '../../src/http/server.ts'
import type { HttpDeps } from '../../src/http/server.ts'
import { createFirehoseSlots, createStreamSlots } from '../../src/http/streams/stream-slots.ts'
import { createBodyHash } from '../../src/security/body-hash.ts'
import { MODEL_KEY, setBench } from '../conversations/fixtures.ts'
import type { Bench, BenchOptions } from '../conversations/fixtures.ts'
import { createSearch } from '../../src/wiring/search.ts'
import { takeTime } from '../support/take-time.ts'

export const KEY = 'the-master-key-of-these-tests'
export const OLD_KEY = 'the-key-before-that-one-0000'

export const MAX_BODY_BYTES = 64 * 1024

export const MAX_UPLOAD_BYTES = 1024 * 1024
export const MAX_STREAMS = 5
export const MAX_FIREHOSE_STREAMS = 10

export const INFO = {
  name: 'agent-server',
  version: '0.0.0-test',
  tools: ['Bash'],
  isolation: 'none',
  network: { default: { mode: 'open' }, ceiling: { mode: 'open' }, modes: ['open'] },
  limits: {
    max_body_bytes: MAX_BODY_BYTES,
    max_upload_bytes: MAX_UPLOAD_BYTES,
    max_header_bytes: 16_384,
    max_output_bytes: 30_000,
    stream_buffer_bytes: 65_536,
    max_concurrent_runs: 256,
    max_streams_per_conversation: MAX_STREAMS,
    max_firehose_streams: MAX_FIREHOSE_STREAMS,
    max_shell_sessions_per_conversation: 16,
    max_running_commands_per_conversation: 16,
  },
  resource_limits: {
    memory_bytes: null,
    processes: 2048,
    cpus: null,
    disk_bytes: null,
    enforced_by: { memory: 'none', processes: 'watchdog', cpu: 'priority', io: 'none', disk: 'none' },
  },
} as const

export type Answer = {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly text: string
  readonly body: any // eslint-disable-line typescript/no-explicit-any
}

export type HttpBench = AsyncDisposable & {
  readonly bench: Bench
  readonly app: FastifyInstance
  readonly readiness: { isReady: boolean; isStarting: boolean }
  /** With the key, unless `headers` say otherwise; an object is sent as JSON. */
  readonly call: (method: string, url: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly create: (fields?: object) => Promise<string>
  /** Listens on a free port; answers the URL. */
  readonly listen: () => Promise<string>
}

type HttpOptions = BenchOptions & { readonly http?: Partial<HttpDeps>; readonly insecureLogin?: boolean }

export async function setHttp(options: HttpOptions = {}): Promise<HttpBench> {
  const bench = await setBench(options)
  const readiness = { isReady: true, isStarting: false }
  const { pino } = await import('pino')
  const logger = pino({ level: 'debug' }, { write: (line: string) => void bench.logged.push(line) })
  const apiKeys = await ApiKeys.open(bench.storage.apiKeys)
  const replays = createReplays(bench)
  const hashBody = createBodyHash([KEY, OLD_KEY])
  const logins = createLoginSupport({
    storage: bench.storage,
    apiKeys,
    masterKeys: [KEY, OLD_KEY],
    hashBody,
    isShared: false,
    isInsecureAllowed: options.insecureLogin ?? false,
  })
  const app = await createHttpServer({
    manager: bench.manager,
    replays,
    search: createSearch(true, {
      registry: bench.known,
      hidden: bench.manager.hidden,
      index: bench.storage.search,
      logs: bench.storage,
      logger,
    }),
    models: new KnownModels({ catalog: bench.catalog, defaults: {}, manager: bench.manager }),
    firehose: bench.firehose,
    authenticate: createAuthenticator([KEY, OLD_KEY], apiKeys),
    apiKeys,
    tickets: new StreamTickets(),
    pendingAuthorizations: new PendingAuthorizations(),
    profiles: lazily(async () => new Profiles({ table: bench.storage.profiles, keys: bench.storage.keys.material })),
    hashBody,
    logins,
    info: { ...INFO, tools: [...INFO.tools], network: { ...INFO.network, modes: [...INFO.network.modes] } },
    readiness: async () => ({ status: readiness.isReady ? 'ok' : 'unavailable' }),
    isStarting: () => readiness.isStarting,
    async untilStarted(signal) {
      while (readiness.isStarting) {
        signal.throwIfAborted()
        await takeTime(5, signal)
      }
    },
    metrics: bench.metrics,
    streamSlots: createStreamSlots(MAX_STREAMS),
    firehoseSlots: createFirehoseSlots(MAX_FIREHOSE_STREAMS),
    corsOrigins: [],
    trustProxy: [],
    logger,
    ...options.http,
  })

  const call: HttpBench['call'] = async (method, url, body, headers = {}) => {
    const isText = typeof body === 'string'
    const response = await app.inject({
      method: method as 'GET',
      url,
      headers: {
        authorization: `Bearer ${KEY}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: isText ? body : JSON.stringify(body) }),
    })
    const isJson = String(response.headers['content-type']).startsWith('application/json')
    return {
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      body: isJson && response.body ? JSON.parse(response.body) : undefined,
    }
  }
  return {
    bench,
    app,
    readiness,
    call,
    async create(fields = {}) {
      const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 0 }
      const { status, body, text } = await call('POST', '/conversations', { llm_config, ...fields })
      expect(status, text).toBe(201)
      return body.id
    },
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    async [Symbol.asyncDispose]() {
      await replays.close()
      await logins[Symbol.asyncDispose]()
      await bench[Symbol.asyncDispose]()
      await app.close()
    },
  }
}

/** An error as documented: this status, this code, a sentence, and nothing else. */
export function expectProblem(answer: Answer, status: number, error: ProblemCode): void {
  expect({ status: answer.status, error: answer.body?.error }, answer.text).toEqual({ status, error })
  expect(ErrorBody.strict().safeParse(answer.body).error).toBeUndefined()
  expect(answer.body.message).toMatch(/\S/)
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
}
