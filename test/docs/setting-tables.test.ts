/** The options of the SDKs that are settings: their rows in docs/ and the module of the Python SDK follow the table of settings. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { settingFiles } from '../../scripts/setting-tables.ts'
import { INSTEAD_OF_OPTION } from '../../src/sdk/options/other-names.ts'
import { optionNames } from '../../src/sdk/options/check-options.ts'
import { some } from '../support/some.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const sectionOf = (page: string) => /^## Options\n[^]*?(?=^## )/m.exec(page)![0]

/** The names in the first cells of the tables. */
const namesIn = (page: string) =>
  page
    .split('\n')
    .flatMap((line) => /^\| (`.*?) \|/.exec(line)?.[1] ?? [])
    .flatMap((cell) => [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name!))

test.each(settingFiles())('$path has the settings of the table: run `npm run openapi`', ({ is, wanted }) => {
  expect(is).toBe(wanted)
})

describe('each option is on the page, and each name there exists', () => {
  test('of the TypeScript SDK', () => {
    const page = sectionOf(read('docs/sdk.md'))
    const written = new Set(some('names', namesIn(page)))
    expect(optionNames.filter((name) => !written.has(name))).toEqual([])
    for (const other of Object.keys(INSTEAD_OF_OPTION)) expect(page).toContain(`\`${other}`)
  })

  test('of the Python SDK', () => {
    const page = sectionOf(read('docs/python.md'))
    const fields = ['options', 'settings'].flatMap((module) => {
      const source = read(`sdk/python/agent_server/${module}.py`)
      const [, body = ''] = /^class (?:Setting)?Options\b.*?\n([^]*?)(?=^ {4}(?:@|def )|^\S)/m.exec(source)!
      return [...body.matchAll(/^ {4}(\w+): .* = /gm)].map(([, name]) => name!)
    })
    expect(new Set(namesIn(page))).toEqual(new Set(some('fields', fields)))
  })
})
