/** Reads the beginning of a server's response to a protocol upgrade, to see whether it agrees. */
import type { Socket } from 'node:net'
import { FirstBytes } from './first-bytes.ts'

const AGREED = /^HTTP\/1\.[01] 101 /
const STATUS_LENGTH = 'HTTP/1.1 101 '.length

/** `bytes` is what was read of the response. Rejects if the connection breaks, and with the signal's reason. */
export async function readUpgradeAnswer(
  target: Socket,
  signal: AbortSignal,
): Promise<{ readonly isAgreed: boolean; readonly bytes: Uint8Array }> {
  const answer = new FirstBytes(target)
  const isAgreed = await answer.read(
    (bytes) => (bytes.length < STATUS_LENGTH ? undefined : AGREED.test(bytes.toString('latin1', 0, STATUS_LENGTH))),
    signal,
  )
  return { isAgreed: isAgreed === true, bytes: answer.rest }
}
