/** The hash that binds an approval to the input that was shown. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../../lib/json/canonical-json.ts'

/** The hashes of inputs that are objects, which nothing changes: the same ones are needed for each call of a turn. */
const hashes = new WeakMap<object, { readonly name: string; readonly hash: string }>()

/** Hashes the call as shown, to which an approval is bound. */
export function hashInput(name: string, input: unknown): string {
  if (typeof input !== 'object' || input === null) return hashOf(name, input)
  const knownHash = hashes.get(input)
  if (knownHash?.name === name) return knownHash.hash
  const hash = hashOf(name, input)
  hashes.set(input, { name, hash })
  return hash
}

const hashOf = (name: string, input: unknown): string =>
  createHash('sha256').update(canonicalJson({ name, input })).digest('hex')
