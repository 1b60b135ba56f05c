/** The tools and their other names in docs/tools.md are those of src/tools/registry.ts. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DEFAULT_TOOLS, TOOL_NAMES, resolveToolNames } from '../../src/tools/registry.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/tools.md'), 'utf8')
const rows = [...page.matchAll(/^\| `(\w+)`(?: \((.*?)\))? \|/gm)]

test('each tool has a row, and each name in it means that tool', () => {
  expect(rows.map(([, name]) => name)).toEqual(TOOL_NAMES)
  for (const [, name, others] of rows) {
    for (const [, other] of (others ?? '').matchAll(/`(\w+)`/g)) expect(resolveToolNames([other!])).toEqual([name])
  }
})

test('the default preset is the one that the page names', () => {
  const told = /Without it: (.*?);/.exec(page)![1]!
  expect([...told.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(DEFAULT_TOOLS)
})
