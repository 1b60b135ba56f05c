import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createBodyHash } from '../../src/security/body-hash.ts'

const ROUTE = 'POST /conversations'
const hash = createBodyHash(['the-key-of-this-server'])

test('a body is compared as a value, not as text', () => {
  expect(hash(ROUTE, { a: 1, b: [2] })).toEqual(hash(ROUTE, JSON.parse('{ "b":[2.0], "a":1 }')))
  expect(hash(ROUTE, { a: 1 })).not.toEqual(hash(ROUTE, { a: '1' }))
})

test('the same body is another request on another route', () => {
  expect(hash('POST /tasks', {})).not.toEqual(hash(ROUTE, {}))
})

test('without the key nobody can check a guess', () => {
  const body = { llm_config: { api_key: 'hunter22' } }
  const plain = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  expect(hash(ROUTE, body).bodyHash).not.toBe(plain)
  expect(createBodyHash(['the-key-of-another-one'])(ROUTE, body).bodyHash).not.toBe(hash(ROUTE, body).bodyHash)
})

test('during a key rotation, bodies hashed with the old key are still recognized', () => {
  const { bodyHash } = hash(ROUTE, { a: 1 })
  const changed = createBodyHash(['the-new-key-of-this-server', 'the-key-of-this-server'])(ROUTE, { a: 1 })
  expect(changed.bodyHash).not.toBe(bodyHash)
  expect(changed.formerHashes).toEqual([bodyHash])
})
