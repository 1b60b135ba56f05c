/** `verifyWebhook` accepts what the server signs, and nothing else. */
import { describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../src/client/client.ts'
import { createWebhookSecret, signWebhook } from '../../src/security/webhook-signature.ts'

const secret = createWebhookSecret()
const body = JSON.stringify({ conversation_id: 'c', event: { type: 'Result', text: 'ü' } })
const sign = (secrets = [secret], now = Date.now()) => signWebhook(secrets, { id: 'some-id', body, now })

describe('a delivery is accepted', () => {
  test('with headers of node:http and with those of fetch', async () => {
    expect(await verifyWebhook({ body, headers: sign() }, secret)).toEqual(JSON.parse(body))
    expect(await verifyWebhook({ body, headers: new Headers(sign()) }, secret)).toEqual(JSON.parse(body))
  })

  test('while the secret is rotated, with the old secret and with the new one', async () => {
    const next = createWebhookSecret()
    for (const each of [secret, next])
      await expect(verifyWebhook({ body, headers: sign([next, secret]) }, each)).resolves.not.toThrow()
  })
})

describe('a delivery is refused', () => {
  const headers = sign()
  test.each([
    ['without headers', { body, headers: {} }],
    ['with another body', { body: body.replace('Result', 'Resulu'), headers }],
    ['with another id', { body, headers: { ...headers, 'webhook-id': 'other' } }],
    ['with the secret of another callback', { body, headers: sign([createWebhookSecret()]) }],
    ['that is six minutes old', { body, headers: sign([secret], Date.now() - 6 * 60_000) }],
    ['from the future', { body, headers: sign([secret], Date.now() + 6 * 60_000) }],
    ['with a time that is no number', { body, headers: { ...headers, 'webhook-timestamp': 'NaN' } }],
    ['with a signature that is not Base64', { body, headers: { ...headers, 'webhook-signature': 'v1,ü v1, v2,AAAA' } }],
    ['with repeated headers', { body, headers: { ...headers, 'webhook-signature': ['v1,AAAA', 'v1,BBBB'] } }],
  ])('%s', async (_, received) => {
    await expect(verifyWebhook(received, secret)).rejects.toMatchObject({ code: 'invalid_signature' })
  })

  test.each([
    ['with parsed JSON', { body: JSON.parse(body), headers }, secret],
    ['with bytes', { body: Buffer.from(body), headers }, secret],
    ['without the headers', { body }, secret],
    ['without anything', undefined, secret],
    ['without a secret', { body, headers }, undefined],
  ])('%s, as a mistake of the program', async (_, received, given) => {
    await expect(verifyWebhook(received as never, given as never)).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  test('with a secret that is not one, as a mistake of the program', async () => {
    for (const each of ['', 'whsec_', 'whsec_!', secret.slice(6)])
      await expect(verifyWebhook({ body, headers }, each), each).rejects.toMatchObject({ code: 'invalid_argument' })
  })
})
