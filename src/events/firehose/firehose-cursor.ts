/**
 * Cursors of the firehose: the index and the number of a record, encrypted. The number counts the events of all
 * conversations, and a client that may see only some of them must not learn how many others there are.
 */
import type { Cipheriv } from 'node:crypto'
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import { Problem } from '../../contract/problem.ts'

const EPOCH_BYTES = 8
const POSITION_BYTES = 6
const BLOCK_BYTES = 16
const CURSOR_CHARS = 22
/** For cursors of versions that did not encrypt: epoch and position in plain text. */
const PLAIN_CURSOR_CHARS = 19

let cached: { readonly epoch: string; readonly cipher: Cipheriv } | undefined

/** `epoch` is the random hexadecimal id of the index; the key is derived from it, so that cursors survive a restart. */
export function encodeCursor(epoch: string, position: number): string {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.write(epoch, 'hex')
  block.writeUIntBE(position, EPOCH_BYTES, POSITION_BYTES)
  if (cached?.epoch !== epoch) cached = { epoch, cipher: createCipheriv('aes-128-ecb', keyOf(epoch), null) }
  // One block, different for each position: ECB is sufficient, and a cipher without state can be reused.
  return cached.cipher.update(block).toString('base64url')
}

/** Returns the position, 0 for the beginning. Throws `invalid_cursor` for an invalid cursor or one of another index. */
export function decodeCursor(cursor: string, epoch: string): number {
  if (cursor === '0') return 0
  const block = blockOf(cursor, epoch)
  if (block?.toString('hex', 0, EPOCH_BYTES) === epoch) return block.readUIntBE(EPOCH_BYTES, POSITION_BYTES)
  throw new Problem(
    'invalid_cursor',
    'This firehose did not issue this cursor; leave it out, or use 0 to start from the beginning.',
  )
}

function blockOf(cursor: string, epoch: string): Buffer | undefined {
  const bytes = Buffer.from(cursor, 'base64url')
  if (cursor.length === PLAIN_CURSOR_CHARS) return bytes
  if (cursor.length !== CURSOR_CHARS || bytes.length !== BLOCK_BYTES) return undefined
  return createDecipheriv('aes-128-ecb', keyOf(epoch), null).setAutoPadding(false).update(bytes)
}

const keyOf = (epoch: string): Buffer =>
  createHash('sha256').update(`agent-server firehose cursor ${epoch}`).digest().subarray(0, BLOCK_BYTES)
