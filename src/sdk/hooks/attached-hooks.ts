/** The functions of one query that a server calls, or asks for. They are removed when this is disposed. */
export type AttachedHooks = AsyncDisposable & {
  /** Resolves when their calls in the background have ended. Rejects with the reason of the signal. */
  readonly settle: (signal: AbortSignal) => Promise<void>
}
