/** The ids of conversations that go with their answer. An id says so itself, and only the server can make one. */
import { randomUUID } from 'node:crypto'
import type { HashBody } from '../../security/body-hash.ts'

const TAG_LENGTH = 12

/** `chat`: of a request without a thread. `response`: with `store: false`. */
export type TemporaryKind = 'chat' | 'response'

/** A UUID of version 8, which clients cannot choose: 72 random bits, and a hash of them. */
export function temporaryId(hashBody: HashBody, kind: TemporaryKind): string {
  const uuid = randomUUID()
  const head = `${uuid.slice(0, 14)}8${uuid.slice(15, 19)}8${uuid.slice(-3)}-`
  return head + tagsOf(hashBody, kind, head)[0]
}

export function isTemporaryId(id: string, hashBody: HashBody, kind: TemporaryKind): boolean {
  const head = id.slice(0, -TAG_LENGTH)
  return mayBeTemporary(id) && tagsOf(hashBody, kind, head).includes(id.slice(-TAG_LENGTH))
}

/** True for ids of version 8, without a hash. */
export const mayBeTemporary = (id: string): boolean => id[14] === '8'

function tagsOf(hashBody: HashBody, kind: TemporaryKind, head: string): readonly string[] {
  const { bodyHash, formerHashes } = hashBody(`temporary ${kind}`, head)
  return [bodyHash, ...formerHashes].map((hash) => hash.slice(0, TAG_LENGTH))
}
