/**
 * Cursors of the firehose: the index and the number of a record, encrypted. The number counts the events of all
 * conversations, and a client that may see only some of them must not learn how many others there are.
 */
import type { Cipheriv } from 'node:crypto'
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { Problem } from '../../contract/problem.ts'

const EPOCH_BYTES = 8
const POSITION_BYTES = 6
const BLOCK_BYTES = 16
const CURSOR_CHARS = 22
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Nonce, epoch, position and tag. */
const FRESH_CURSOR_CHARS = 56
/** The length of cursors of versions that did not encrypt: epoch and position in plain text. */
const PLAIN_CURSOR_CHARS = 19

let cachedCipher: { readonly epoch: string; readonly cipher: Cipheriv } | undefined

/** `epoch` is the random hexadecimal id of the index; the key is derived from it, so that cursors survive a restart. */
export function encodeCursor(epoch: string, position: number): string {
  const block = blockAt(epoch, position)
  if (cachedCipher?.epoch !== epoch) cachedCipher = { epoch, cipher: createCipheriv('aes-128-ecb', keyOf(epoch), null) }
  // One block, different for each position: ECB is sufficient, and a cipher without state can be reused.
  return cachedCipher.cipher.update(block).toString('base64url')
}

/**
 * Returns a different cursor each time, for a position that no event of the reader is at: from equal cursors a client
 * could tell that nothing has happened in the conversations of others.
 */
export function encodeFreshCursor(epoch: string, position: number): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-128-gcm', keyOf(epoch), nonce)
  const plain = blockAt(epoch, position).subarray(0, EPOCH_BYTES + POSITION_BYTES)
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')
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

function blockAt(epoch: string, position: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.write(epoch, 'hex')
  block.writeUIntBE(position, EPOCH_BYTES, POSITION_BYTES)
  return block
}

function blockOf(cursor: string, epoch: string): Buffer | undefined {
  const bytes = Buffer.from(cursor, 'base64url')
  if (cursor.length === FRESH_CURSOR_CHARS) return openFresh(bytes, epoch)
  if (cursor.length === PLAIN_CURSOR_CHARS) return bytes
  if (cursor.length !== CURSOR_CHARS || bytes.length !== BLOCK_BYTES) return undefined
  return createDecipheriv('aes-128-ecb', keyOf(epoch), null).setAutoPadding(false).update(bytes)
}

const keyOf = (epoch: string): Buffer =>
  createHash('sha256').update(`agent-server firehose cursor ${epoch}`).digest().subarray(0, BLOCK_BYTES)

function openFresh(bytes: Buffer, epoch: string): Buffer | undefined {
  try {
    const decipher = createDecipheriv('aes-128-gcm', keyOf(epoch), bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return undefined // not encrypted by this server
  }
}
