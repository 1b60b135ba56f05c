import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runAsNobody } from '../support/unprivileged.ts'

/** The limit does not hold for root. */
test.runIf(process.getuid?.() === 0)(
  'a conversation gets at most half of the processes that the server may have, and the operator hears that these are few',
  async () => {
    expect(await runAsNobody(join(import.meta.dirname, 'children/with-few-processes.ts'))).toEqual([
      150,
      100,
      [expect.stringMatching(/^the server may have 300 processes and threads; .*--pids-limit/)],
    ])
  },
)
