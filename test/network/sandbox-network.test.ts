import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runAsNobody } from '../support/unprivileged.ts'

/** Everywhere else the tests run as whoever runs them. */
test.runIf(process.getuid?.() === 0)('a user without rights gets the same network modes', async () => {
  expect(await runAsNobody(join(import.meta.dirname, 'children/unprivileged-network.ts'))).toEqual({
    isolatesNetwork: true,
    // The loopback of the host, and a name that leads there by leave of the operator.
    open: [true, false],
    none: [false, false],
    allowlist: [false, true],
  })
})
