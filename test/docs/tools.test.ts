/** The tools and their other names in docs/tools.md are those of src/tools/registry.ts. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { costTable, UNUSED_DEPS, writtenTable } from '../../scripts/tool-costs.ts'
import { DEFAULT_TOOLS } from '../../src/tools/presets.ts'
import { createTools, TOOL_NAMES, resolveToolNames } from '../../src/tools/registry.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/tools.md'), 'utf8')
const rows = [...page.slice(0, page.indexOf('## Presets')).matchAll(/^\| `(\w+)`(?: \((.*?)\))? \|/gm)]

test('each tool has a row, and each alias in the row resolves to it', () => {
  expect(rows.map(([, name]) => name)).toEqual(TOOL_NAMES)
  for (const [, name, others] of rows) {
    for (const [, other] of (others ?? '').matchAll(/`(\w+)`/g)) expect(resolveToolNames([other!])).toEqual([name])
  }
})

test("the table of presets equals the script's output", () => {
  expect(writtenTable(page), 'run `node scripts/tool-costs.ts --write`').toBe(costTable())
})

test('the tools that run at the same time are those that only read', () => {
  const sentence = /Calls of one turn that only read \((.*?)\)/.exec(page)![1]!
  const readers = createTools(TOOL_NAMES, UNUSED_DEPS).filter(({ readOnly }) => readOnly)
  expect([...sentence.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(readers.map(({ name }) => name))
})

test('the default preset is the one that the page names', () => {
  const sentence = /Without it: (.*?);/s.exec(page)![1]!
  expect([...sentence.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(DEFAULT_TOOLS)
})
