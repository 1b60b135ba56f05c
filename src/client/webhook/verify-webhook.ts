/** Verifies deliveries of callbacks, which are signed as Standard Webhooks specifies, with the cryptography of browsers. */
import type { z } from 'zod'
import type { WebhookBody } from '../../contract/callback.ts'
import { AgentServerError } from '../request/agent-server-error.ts'
import { mistake } from '../request/sendable.ts'

/** The body of a delivery. */
export type WebhookDelivery = z.output<typeof WebhookBody>

/** What was received. `body` is the raw body: JSON that was parsed and written again has another signature. */
export type ReceivedWebhook = {
  readonly body: string
  /** The headers in the form of `fetch` or of `node:http`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
}

/** How old a delivery may be, or how far ahead of this clock: an old one that is sent again is refused. */
const TOLERANCE_MS = 5 * 60_000

const VERSION = 'v1,'
const PREFIX = 'whsec_'

/**
 * Returns what was delivered. Throws an `AgentServerError` with the code `invalid_signature` if the server did not send
 * it: answer 401 then; and one with `invalid_argument` for a mistake of the program. `secret` is the one that `callbacks.create` returned.
 */
export async function verifyWebhook(webhook: ReceivedWebhook, secret: string): Promise<WebhookDelivery> {
  refuseMistakes(webhook, secret)
  const { body, headers } = webhook
  const [id, time, signatures] = ['id', 'timestamp', 'signature'].map((name) => headerOf(headers, `webhook-${name}`))
  if (!id || !time || !signatures) throw refusal('it has no signature')
  if (!(Math.abs(Date.now() - Number(time) * 1000) <= TOLERANCE_MS)) throw refusal('its time is not that of this clock')
  const key = await importKey(secret)
  const signedBytes = new TextEncoder().encode(`${id}.${time}.${body}`)
  for (const signature of signatures.split(' ').filter((each) => each.startsWith(VERSION))) {
    const bytes = bytesOf(signature.slice(VERSION.length))
    if (bytes && (await crypto.subtle.verify('HMAC', key, bytes, signedBytes))) return parse(body)
  }
  throw refusal('its signature is not one of this secret')
}

/** Programs without types can pass anything: a body that was parsed would be refused as if somebody else had sent it. */
function refuseMistakes(webhook: unknown, secret: unknown): void {
  const { body, headers }: { body?: unknown; headers?: unknown } = Object(webhook)
  if (typeof body !== 'string')
    throw mistake('body must be the text of the request as it was received: neither parsed JSON nor bytes.')
  if (typeof headers !== 'object' || headers === null) throw mistake('headers must be the headers of the request.')
  if (typeof secret !== 'string') throw mistake('secret must be the one that callbacks.create returned.')
}

function headerOf(headers: ReceivedWebhook['headers'], name: string): string | undefined {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  return typeof value === 'string' ? value : undefined
}

async function importKey(secret: string): Promise<CryptoKey> {
  const bytes = secret.startsWith(PREFIX) ? bytesOf(secret.slice(PREFIX.length)) : undefined
  if (!bytes?.length) throw mistake(`The secret of a callback begins with ${PREFIX}.`)
  return await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** Undefined for what is not Base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  } catch {
    return undefined // another signature may be valid
  }
}

function parse(body: string): WebhookDelivery {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- signed, so that it is what the server has sent
  return JSON.parse(body) as WebhookDelivery
}

const refusal = (why: string) =>
  new AgentServerError('invalid_signature', `The webhook was not sent by the server: ${why}. Answer 401.`)
