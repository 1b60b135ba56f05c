/** Says whose notes are in a directory. Vitest runs this before each test file while it is noted which mutants each reaches. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, expect } from 'vitest'
import type { Orders } from './switch.ts'
import { noteAgain, ORDERS_VARIABLE, OWNER, writeNotes } from './switch.ts'

const { notes } = JSON.parse(process.env[ORDERS_VARIABLE] ?? '{}') as Orders
if (notes !== undefined) {
  noteAgain()
  const directory = join(notes, basename(process.env['TMPDIR'] ?? ''))
  mkdirSync(directory, { recursive: true })
  // This hook runs before the one that gives the file another directory, and after those of the file.
  afterAll(() => {
    writeFileSync(join(directory, OWNER), expect.getState().testPath ?? '')
    writeNotes()
  })
}
