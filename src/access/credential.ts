/** Random credentials: generates and hashes them. */
import { createHash, randomBytes } from 'node:crypto'

const BYTES = 32

/** 256 random bits after a prefix that secret scanners recognise. */
export function makeCredential(prefix: 'ask_' | 'ast_' | 'asl_' | 'asv_' | 'asw_' | 'asc_'): string {
  return prefix + randomBytes(BYTES).toString('base64url')
}

/** SHA-256, hexadecimal. Slow hashes are for passwords: nobody can guess 256 random bits. */
export function hashCredential(credential: string): string {
  return createHash('sha256').update(credential).digest('hex')
}
