/**
 * Counts requests without a valid key per client address. Only such requests are rate limited: a client with a valid
 * key is always accepted, even from such an address, because otherwise anybody could lock the operator out.
 */
import type { FastifyRequest } from 'fastify'
import Fastify from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { networkOf } from '../../security/client-network.ts'
import { SCHEMA_CONTROLLER } from '../request/parse-input.ts'

export const MAX_FAILED_KEYS = 20
const WINDOW_MS = 60_000

/** Remembered addresses; the one unused for longest is evicted first. */
const MAX_ADDRESSES = 10_000

/** Throws `too_many_attempts` instead of returning when the limit is exceeded. */
export type CountFailedKey = (request: FastifyRequest) => Promise<void>

export function createFailedKeys(): CountFailedKey {
  let counter: ReturnType<typeof createCounter> | undefined
  return async (request) => {
    const count = await (counter ??= createCounter())
    const outcome = await count(request)
    if (outcome.isAllowed || !outcome.isExceeded) return
    throw new Problem(
      'too_many_attempts',
      'Too many requests from this address had no valid key. Wait, or send a valid key.',
      {
        details: { retry_after: outcome.ttlInSeconds },
      },
    )
  }
}

/**
 * Runs on a separate app, created on first use: on the server's own app it would have to exist from the start, and slow
 * it down.
 */
async function createCounter() {
  const { default: rateLimit } = await import('@fastify/rate-limit')
  const app = Fastify({ schemaController: SCHEMA_CONTROLLER })
  await app.register(rateLimit, { global: false, cache: MAX_ADDRESSES, keyGenerator: ({ ip }) => networkOf(ip) })
  return app.createRateLimit({ max: MAX_FAILED_KEYS, timeWindow: WINDOW_MS })
}
