/** The README and the pages of docs/ lead to each other, and nowhere else but to the web. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { some } from '../support/some.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'bench/README.md',
  'src/README.md',
  'examples/clients.md',
  ...some('pages', globSync('docs/*.md', { cwd: ROOT })),
]
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')

/** GitHub's anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
const anchorsIn = (text: string) => [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!))

const linksIn = (page: string) => [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
const sourcesIn = (page: string) =>
  [...read(page).matchAll(/`((?:src|scripts|test)\/[^`*]*)`/g)].map(([, path]) => path!)
some('links', PAGES.flatMap(linksIn))
some('source files', PAGES.flatMap(sourcesIn))

test.each(PAGES)('every link in %s leads to a file, and to a heading in it', (page) => {
  const broken = linksIn(page).flatMap((target) => {
    if (/^https?:/.test(target)) return []
    const [path, anchor] = target.split('#')
    const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path!))
    if (!existsSync(join(ROOT, file))) return [target]
    return anchor === undefined || anchorsIn(read(file)).includes(anchor) ? [] : [target]
  })
  expect(broken).toEqual([])
})

test.each(PAGES)('every source file that %s names exists', (page) => {
  expect(sourcesIn(page).filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('the index lists every page', () => {
  const index = read('docs/README.md')
  const pages = globSync('*.md', { cwd: join(ROOT, 'docs') }).filter((page) => page !== 'README.md')
  expect(pages.filter((page) => !index.includes(`| [${page}](${page}) |`))).toEqual([])
})

describe('the README', () => {
  const readme = read('README.md')

  test('is short', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(160)
  })

  test('has the figures of bench/README.md', () => {
    const table = /\| agent-server \|(.*?)\n\n/s.exec(readme)![1]!
    const figures = [...table.matchAll(/^\|[^|]+\| ([^|]+) \| ([^|]+) \|/gm)]
    expect(figures.length).toBe(5)
    const measured = read('bench/README.md')
    for (const figure of figures.flatMap(([, ours, bare]) => [ours!, bare!]))
      if (figure !== '–') expect(measured).toContain(figure)
  })
})
