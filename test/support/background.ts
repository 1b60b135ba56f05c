/**
 * A command that waits until the test makes the file `allowed` in its directory. A background process that sleeps instead
 * may be done before its command has ended, on a slow machine.
 */
export const UNTIL_ALLOWED = 'until [ -e allowed ]; do sleep 0.02; done'
