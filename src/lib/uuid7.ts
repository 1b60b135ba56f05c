/**
 * Creates UUIDv7 ids (RFC 9562): ordered by time, and within one millisecond by creation. Own code, because Node's
 * `randomUUIDv7` accepts no time and does not order the ids of one millisecond (it takes 201 ns, and this 354 ns).
 */
import { randomFillSync } from 'node:crypto'

// One system call fills this many random bytes; requesting ten at a time would cost more than the id itself.
const POOL_BYTES = 8192
const pool = Buffer.allocUnsafe(POOL_BYTES)
let usedBytes = POOL_BYTES

/** One id takes four for the counter and six for its end. */
const RANDOM_BYTES = 10

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

let lastMs = -1
// 26 bits directly after the time. It starts below 2^25 in each millisecond, so 33 million ids fit before it could
// overflow: the id's time is therefore always the given time, never a later one.
let counter = 0

/** `ms` is the Unix time in the id. Ids of one process ascend as long as `ms` does not decrease. */
export function uuid7(ms: number = Date.now()): string {
  if (usedBytes + RANDOM_BYTES > POOL_BYTES) {
    randomFillSync(pool)
    usedBytes = 0
  }
  const random = usedBytes
  usedBytes += RANDOM_BYTES
  if (ms === lastMs) counter += 1
  else {
    lastMs = ms
    counter = pool.readUInt32BE(random) & 0x1ff_ffff
  }
  const time = ms.toString(16).padStart(12, '0')
  const high = (0x7000 | (counter >>> 14)).toString(16)
  const low = (0x8000 | (counter & 0x3fff)).toString(16)
  let rest = ''
  // oxlint-disable-next-line typescript/no-non-null-assertion -- HEX has an entry for each byte
  for (let at = random + 4; at < random + RANDOM_BYTES; at++) rest += HEX[pool[at]!]!
  return `${time.slice(0, 8)}-${time.slice(8)}-${high}-${low}-${rest}`
}

/** Returns the Unix time in milliseconds in a UUIDv7; undefined for any other text. */
export function uuid7Time(id: string): number | undefined {
  if (!/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i.test(id)) return undefined
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
