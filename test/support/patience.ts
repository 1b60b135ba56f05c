/** How long a test waits for a condition, and how much of its input a randomised test tries. */

/**
 * Milliseconds after which a wait fails and says what it saw. Far more than anything takes on a machine whose cores are
 * all busy with something else, and less than vitest gives a test, which could only say that time ran out.
 */
export const PATIENCE_MS = 120_000

/** The same for requests that take a timeout in seconds. */
export const PATIENCE_S = PATIENCE_MS / 1000

/** Whether this is `npm run soak`. */
export const IS_SOAK = Boolean(process.env['SOAK'])

/** The number of repetitions of a randomised test: `short` in `npm test`, `long` in `npm run soak`. */
export const effort = (short: number, long: number): number => (IS_SOAK ? long : short)
