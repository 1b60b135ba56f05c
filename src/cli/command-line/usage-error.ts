/** Something on the command line is wrong: one sentence, no stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
