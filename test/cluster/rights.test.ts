/** The rights of a client on the way to the owner of a conversation. */
import { expect, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { readRights, rightsHeader } from '../../src/cluster/rights.ts'

test('the owner learns the key, the login, the scopes and the limits of the client, for this conversation alone', () => {
  const conversations = new Set(['one', 'other'])
  const limits = { conversations, userId: 'user-17' }
  const key = { id: 'a key', name: 'dashboard' }
  const access = new Access(key, ['read', 'write'], limits, new AbortController().signal, 'a login')
  const arrived = readRights(rightsHeader({ fingerprint: 'of the key', access: access.within('one') }))
  expect(arrived?.fingerprint).toBe('of the key')
  expect(arrived?.access).toMatchObject({ key, loginId: 'a login', limits: { userId: 'user-17' } })
  expect(arrived?.access.scopes).toEqual(['read', 'write'])
  expect([...(arrived?.access.limits.conversations ?? [])]).toEqual(['one'])
})

test('another header gives no rights', () => {
  expect(readRights('Bearer key')).toBeUndefined()
  expect(readRights(undefined)).toBeUndefined()
})
