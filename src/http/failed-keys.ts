/**
 * Requests without a right key, counted by client address. Only they are ever refused for their number: whoever has the key
 * gets in, however many others fail behind the same address, as else anybody could lock the operator out.
 */
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../contract/problem.ts'

export const MAX_FAILED_KEYS = 20
const WINDOW_MS = 60_000

/** Addresses that are remembered; the one that was seen longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000

/** Throws `too_many_attempts` instead of returning, once there were too many. */
export type CountFailedKey = (request: FastifyRequest) => Promise<void>

export async function createFailedKeys(app: FastifyInstance): Promise<CountFailedKey> {
  // An IPv6 client has a network of addresses: the plugin counts them as one.
  await app.register(rateLimit, { global: false, cache: MAX_ADDRESSES })
  const count = app.createRateLimit({ max: MAX_FAILED_KEYS, timeWindow: WINDOW_MS })
  return async (request) => {
    const outcome = await count(request)
    if (outcome.isAllowed || !outcome.isExceeded) return
    throw new Problem('too_many_attempts', 'Too many requests from this address had no right key; wait, or send it.', {
      details: { retry_after: outcome.ttlInSeconds },
    })
  }
}
