/** Says in words why an MCP server cannot be reached, or why a call of it failed. */

/** Its message is complete: the cause adds nothing. */
export class NoConnection extends Error {
  override readonly name = 'NoConnection'
}

/** The causes say more than the message: `fetch failed`. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reason = error.name === 'TimeoutError' ? 'it did not answer in time' : error.message
  if (error instanceof NoConnection) return reason
  return error.cause instanceof Error && error.cause.message !== reason ? `${reason}: ${reasonOf(error.cause)}` : reason
}
