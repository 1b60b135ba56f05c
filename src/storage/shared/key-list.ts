/**
 * The keys that encrypt stored data: random keys of the server, themselves encrypted with the operator's keys. So the
 * operator's key can change without rewriting anything else.
 */
import { randomBytes } from 'node:crypto'
import type { KeyMaterial } from '../../security/sealer.ts'
import { createSealers } from '../../security/sealer.ts'
import type { DataKeys } from '../storage.ts'

const OWNER = 'data keys'
const KEY_BYTES = 32

export type KeyList = {
  /** What is to be stored, Base64, oldest first. */
  readonly sealed: readonly string[]
  readonly isChanged: boolean
  readonly keys: DataKeys
}

/**
 * Creates a key if none can be decrypted, and re-encrypts the readable ones with the first of the operator's keys.
 * Unreadable keys are kept: the operator's key for them may be found again.
 */
export function openKeys(storedLines: readonly string[], operatorKeys: KeyMaterial): KeyList {
  const [any, first] = [createSealers(operatorKeys)(OWNER), createSealers([operatorKeys[0]])(OWNER)]
  const entries = storedLines.map((line) => ({ line, key: any.unseal(Buffer.from(line, 'base64'))?.toString() }))
  if (entries.every(({ key }) => key === undefined))
    entries.push({ line: '', key: randomBytes(KEY_BYTES).toString('base64') })
  const sealedLines = entries.map(({ line, key }) =>
    key === undefined || first.unseal(Buffer.from(line, 'base64'))
      ? line
      : first.seal(Buffer.from(key)).toString('base64'),
  )
  // Newest first: it encrypts.
  const keys = entries.flatMap(({ key }) => key ?? []).toReversed()
  return {
    sealed: sealedLines,
    isChanged: sealedLines.join() !== storedLines.join(),
    // oxlint-disable-next-line typescript/no-non-null-assertion -- there is one: it was made if no key could be read
    keys: { material: [keys[0]!, ...keys.slice(1), ...operatorKeys], locked: entries.length - keys.length },
  }
}
