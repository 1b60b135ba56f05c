import { expect, test } from 'vitest'
import { decideCommand } from './decisions.ts'

const PLACES: readonly string[] = [
  'for ((i = 0; i < 1; i++)); do evil; done',
  'for ((i = $(evil); i < 1; i++)); do ls; done',
  'for ((i = 0; i < $(evil); i++)); do ls; done',
  'echo "${x/$(evil)/b}"',
  'echo "${x/a/$(evil)}"',
  'echo "${x//$(evil)/b}"',
]

test.each(PLACES)('a denied command is found inside of another one: %s', (line) => {
  expect(decideCommand(line, { mode: 'bypass', deny: ['Bash(evil:*)'] })).toMatchObject({ behavior: 'deny' })
})
