/** The catalogue of errors, the sources and docs/errors.md tell the same codes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PROBLEMS } from '../../src/contract/problem.ts'
import { literalsIn, problemCodesIn, sourcePaths } from '../layers/imports.ts'
import { readTable } from './tables.ts'

const ROOT = join(import.meta.dirname, '../..')
const codes = Object.entries(PROBLEMS)

describe('docs/errors.md', () => {
  const rows = readTable(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8'))

  test.each(codes)('documents %s, its status %i and what to do', (code, status) => {
    const [, statusCell, ...words] = rows.find(([first]) => first === code) ?? []
    expect(statusCell).toBe(String(status))
    expect(words.at(-1)?.length).toBeGreaterThan(10)
  })

  test('documents each code once, and no other', () => {
    expect(rows.map(([code = '']) => code).sort()).toEqual(Object.keys(PROBLEMS).sort())
  })
})

test('no code of the catalogue is dead: each is thrown somewhere, or results from a failure of the framework', () => {
  const sources = sourcePaths(join(ROOT, 'src')).map((path) => readFileSync(join(ROOT, 'src', path), 'utf8'))
  const thrown = sources.flatMap(problemCodesIn)
  expect(thrown.length).toBeGreaterThan(codes.length / 2)
  const used = new Set([
    ...thrown,
    ...literalsIn(readFileSync(join(ROOT, 'src/http/request/problem-handler.ts'), 'utf8')),
  ])
  expect(codes.map(([code]) => code).filter((code) => !used.has(code))).toEqual([])
})
