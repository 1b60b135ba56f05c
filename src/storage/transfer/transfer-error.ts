/** Data was not copied, or not all of it; the message says why and what to do. */
export class TransferError extends Error {
  override readonly name = 'TransferError'
}

const SHOWN = 10

/** Throws a `TransferError` if there is any fault. */
export function refuseFaults(faults: readonly string[], advice: string): void {
  if (faults.length === 0) return
  const more = faults.length > SHOWN ? `; and ${faults.length - SHOWN} more` : ''
  throw new TransferError(`${faults.slice(0, SHOWN).join('; ')}${more}. ${advice}`)
}
