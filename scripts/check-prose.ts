/**
 * `npm run check:prose [-- --all]`: the documentation and the descriptions of the API have none of the phrases of `prose.ts`. In the
 * sources they are counted; `--all` lists them.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Finding } from './prose.ts'
import { findPhrases, wordsOfJson, wordsOfMarkdown, wordsOfSource } from './prose.ts'

const ROOT = join(import.meta.dirname, '..')

/** Phrases left in the sources. Lower it when there are fewer; it must never be raised. */
const MOST_IN_SOURCES = 602

/** The list itself, and what is quoted from it. */
const EXEMPT = ['scripts/prose.ts']

const { values } = parseArgs({ options: { all: { type: 'boolean', default: false } } })
const inDocuments = [
  ...findIn(['README.md', 'CHANGELOG.md', 'docs/**/*.md'], wordsOfMarkdown),
  ...findIn(['openapi/*.json'], wordsOfJson),
]
const inSources = findIn(['src/**/*.ts', 'scripts/**/*.ts', 'bench/**/*.ts'], wordsOfSource)

if (values.all) for (const finding of inSources) console.log(describe(finding))
for (const finding of inDocuments) console.error(describe(finding))
console.log(
  `${inDocuments.length} phrases in the documentation, ${inSources.length} of at most ${MOST_IN_SOURCES} in the sources.`,
)
if (inSources.length < MOST_IN_SOURCES) console.log(`Lower MOST_IN_SOURCES to ${inSources.length}.`)
if (inSources.length > MOST_IN_SOURCES)
  console.error('The sources have more of these phrases than before; `npm run check:prose -- --all` lists them.')
if (inDocuments.length > 0 || inSources.length > MOST_IN_SOURCES) process.exitCode = 1

type FileFinding = Finding & { readonly path: string }

function findIn(patterns: readonly string[], wordsOf: (text: string) => string): FileFinding[] {
  const paths = globSync([...patterns], { cwd: ROOT }).filter((path) => !EXEMPT.includes(path))
  // Without files there would be nothing to find, and nothing would be checked.
  if (paths.length === 0) throw new Error(`There are no files ${patterns.join(', ')}.`)
  return paths.toSorted().flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    return findPhrases(wordsOf(text)).map((finding) => ({ ...finding, path }))
  })
}

function describe({ path, line, found, instead }: FileFinding): string {
  const place = path.endsWith('.json') ? path : `${path}:${line}`
  return `${place}: "${found}"; write: ${instead}`
}
