/** The variables of src/config/, `.env.example` and docs/configuration.md are the same. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { VARIABLES } from '../../src/config/variables.ts'
import { readTable } from './tables.ts'
import { some } from '../support/some.ts'

const ROOT = join(import.meta.dirname, '../..')

type Variable = { readonly about: string; readonly default?: string; readonly secret?: true }
const variables: [string, Variable][] = Object.entries(VARIABLES)
const names = variables.map(([name]) => name).toSorted()

/** Read beside the settings: what systems have agreed on, not ours to name. */
const CONVENTIONS = 'XDG_DATA_HOME XDG_CONFIG_HOME NO_COLOR SSH_AUTH_SOCK TERM VISUAL EDITOR UV_THREADPOOL_SIZE'.split(
  ' ',
)

describe('docs/configuration.md', () => {
  const rows = readTable(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8'))

  test('has a row for each variable and no other', () => {
    expect(rows.map(([name = '']) => name).sort()).toEqual([...names, ...CONVENTIONS].sort())
  })

  test.each(variables)('describes %s and its default', (name, { default: value }) => {
    const [, ...cells] = rows.find(([first]) => first === name) ?? []
    expect(cells.at(-1)?.length).toBeGreaterThan(10)
    if (value !== undefined) expect(cells.join(' ')).toContain(value)
  })

  test.each(variables.filter(([, { secret }]) => secret))('says that %s may come from a file', (name) => {
    const [, ...cells] = rows.find(([first]) => first === name) ?? []
    expect(cells.join(' ')).toContain('_FILE')
  })
})

describe('.env.example', () => {
  const text = readFileSync(join(ROOT, '.env.example'), 'utf8')

  test('sets each variable once, in a comment or not, and no other', () => {
    const lines = [...text.matchAll(/^(?:# ?)?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1]!)
    expect(lines.sort()).toEqual(names)
  })

  test('shows the defaults as they are', () => {
    const shown = parseEnv(text.replaceAll(/^# ?(?=[A-Z][A-Z0-9_]*=)/gm, ''))
    for (const [name, variable] of variables) {
      if (variable.default !== undefined) expect(shown, name).toHaveProperty(name, variable.default)
    }
  })
})

/** What reads the variables. */
const source = globSync('src/config/*.ts', { cwd: ROOT })
  .filter((path) => !path.endsWith('variables.ts'))
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n')

test('no variable is dead', () => {
  expect(some('variables', names).filter((name) => !source.includes(`'${name}'`))).toEqual([])
})

test('only documented variables are read', () => {
  const read = [...source.matchAll(/process\.env\.([A-Z_0-9]+)/g)].map((match) => match[1]!)
  expect(some('variables', read).filter((name) => !names.includes(name) && !CONVENTIONS.includes(name))).toEqual([])
})
