/** The catalogue of errors, the sources and docs/errors.md tell the same codes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PROBLEMS } from '../../src/contract/problem.ts'
import { literalsIn, sourcePaths } from '../layers/imports.ts'
import { readTable } from './tables.ts'

const ROOT = join(import.meta.dirname, '../..')
const CATALOGUE = 'contract/problem.ts'

const codes = Object.entries(PROBLEMS)

describe('docs/errors.md', () => {
  const rows = readTable(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8'))

  test.each(codes)('tells of %s, its status %i and what to do', (code, status) => {
    const [, statusCell, ...words] = rows.find(([first]) => first === code) ?? []
    expect(statusCell).toBe(String(status))
    expect(words.at(-1)?.length).toBeGreaterThan(10)
  })

  test('tells of each code once, and of no other', () => {
    expect(rows.map(([code]) => code).toSorted()).toEqual(Object.keys(PROBLEMS).toSorted())
  })
})

test('no code of the catalogue is dead', () => {
  const sources = sourcePaths(join(ROOT, 'src')).filter((path) => path !== CATALOGUE)
  const used = new Set(sources.flatMap((path) => [...literalsIn(readFileSync(join(ROOT, 'src', path), 'utf8'))]))
  expect(codes.map(([code]) => code).filter((code) => !used.has(code))).toEqual([])
})
