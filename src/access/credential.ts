/** Random credentials: how they are made, and what is kept of them. */
import { createHash, randomBytes } from 'node:crypto'

const BYTES = 32

/** 256 random bits behind a prefix that secret scanners can find. */
export function makeCredential(prefix: 'ask_' | 'ast_'): string {
  return prefix + randomBytes(BYTES).toString('base64url')
}

/** SHA-256, hexadecimal. A slow hash is for passwords: nobody guesses 256 random bits. */
export function hashCredential(credential: string): string {
  return createHash('sha256').update(credential).digest('hex')
}
