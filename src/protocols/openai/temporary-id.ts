/** The ids of conversations that go with their answer. An id says so itself, and only the server can make one. */
import { randomUUID } from 'node:crypto'
import type { HashBody } from '../../security/body-hash.ts'

const TAG_LENGTH = 12

/** A UUID of version 8, which clients cannot choose: 72 random bits, and a hash of them. */
export function temporaryId(hashBody: HashBody): string {
  const uuid = randomUUID()
  const head = `${uuid.slice(0, 14)}8${uuid.slice(15, 19)}8${uuid.slice(-3)}-`
  return head + tagsOf(hashBody, head)[0]
}

export function isTemporaryId(id: string, hashBody: HashBody): boolean {
  const head = id.slice(0, -TAG_LENGTH)
  return head[14] === '8' && tagsOf(hashBody, head).includes(id.slice(-TAG_LENGTH))
}

function tagsOf(hashBody: HashBody, head: string): readonly string[] {
  const { bodyHash, formerHashes } = hashBody('temporary conversation', head)
  return [bodyHash, ...formerHashes].map((hash) => hash.slice(0, TAG_LENGTH))
}
