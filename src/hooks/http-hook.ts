/** Calls an HTTP hook: one signed POST to a checked address, with a bounded answer. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import type { HttpHook } from '../contract/hooks/hooks.ts'
import type { SafeFetch } from '../security/safe-fetch.ts'
import { signWebhook } from '../security/webhook-signature.ts'
import type { HookEnd } from './hook-answer.ts'
import { readAnswer, UnreadableAnswer } from './hook-answer.ts'

/** The credentials of all hooks with one URL. */
export const HookCredentials = z.object({
  secret: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
})
export type HookCredentials = z.infer<typeof HookCredentials>

export type HttpHookDeps = {
  readonly fetch: Pick<SafeFetch, 'exchange'>
  readonly userAgent: string
  /** Undefined if they cannot be decrypted. */
  readonly credentialsOf: (url: string) => HookCredentials | undefined
}

/** A longer answer cannot be read. */
const MAX_ANSWER_BYTES = 1024 ** 2

/** Rejects with the signal's reason, or with an error whose message says what failed. */
export async function callHttpHook(
  { fetch, userAgent, credentialsOf }: HttpHookDeps,
  { url, secret, headers: namedHeaders }: HttpHook,
  { point, text }: { readonly point: HookPoint; readonly text: string },
  signal: AbortSignal,
): Promise<HookEnd> {
  const failure = (why: string): HookEnd => ({ kind: 'failed', why })
  const credentials = credentialsOf(url)
  if (!credentials && (secret !== undefined || namedHeaders))
    return failure('its secret was encrypted with another key; set the hooks again')
  const signedHeaders = credentials?.secret
    ? signWebhook([credentials.secret], { id: randomUUID(), body: text, now: Date.now() })
    : {}
  const headers = {
    'content-type': 'application/json',
    'user-agent': userAgent,
    ...credentials?.headers,
    ...signedHeaders,
  }
  const answer = await fetch.exchange(url, { headers, body: text, maxBytes: MAX_ANSWER_BYTES, signal })
  if (answer.status < 200 || answer.status > 299) return failure(`it answered with the status ${answer.status}`)
  if (answer.isCut) return failure(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`)
  try {
    return {
      kind: 'answered',
      answer: readAnswer(point, new TextDecoder('utf-8', { fatal: true }).decode(answer.body)),
    }
  } catch (error) {
    return failure(error instanceof UnreadableAnswer ? error.message : 'its answer is not UTF-8')
  }
}
