/** Deliveries are signed as Standard Webhooks specifies; the first example is that of its documentation. */
import { expect, test } from 'vitest'
import { createWebhookSecret, signWebhook } from '../../src/security/webhook-signature.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const DELIVERY = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}', now: 1_614_265_330_999 }
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

test('a delivery has its id, its time in seconds, and a signature for each secret', () => {
  expect(signWebhook([SECRET], DELIVERY)).toEqual({
    'webhook-id': DELIVERY.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': SIGNATURE,
  })
  const both = signWebhook([SECRET, createWebhookSecret()], DELIVERY)['webhook-signature']?.split(' ')
  expect(both).toEqual([SIGNATURE, expect.stringMatching(/^v1,[\w+/]{43}=$/)])
  expect(both?.[1]).not.toBe(SIGNATURE)
})

test.each([{ id: 'msg_other' }, { body: '{}' }, { now: DELIVERY.now + 1000 }])(
  'a signature is about the id, the time and the body: not %j',
  (change) => {
    expect(signWebhook([SECRET], { ...DELIVERY, ...change })['webhook-signature']).not.toBe(SIGNATURE)
  },
)

test('a new secret has 32 bytes, and no other one has them', () => {
  const secrets = [createWebhookSecret(), createWebhookSecret()]
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[\w+/]{43}=$/)
  expect(secrets[0]).not.toBe(secrets[1])
})
