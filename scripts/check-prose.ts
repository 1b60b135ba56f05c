/**
 * `npm run check:prose [-- --all]`: fails if the documentation or the descriptions of the API contain a phrase of `prose.ts`, or if
 * the sources contain more of them than before. `--all` lists those in the sources.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Finding } from './prose.ts'
import { findPhrases, MOST_IN_SOURCES, wordsOfJson, wordsOfMarkdown, wordsOfSource } from './prose.ts'

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const { root } = values

/** It quotes the phrases. */
const EXEMPT = 'scripts/prose.ts'

const inDocuments = [
  ...findIn(['README.md', 'CHANGELOG.md', '.env.example', 'docs/**/*.md'], wordsOfMarkdown),
  ...findIn(['openapi/*.json'], wordsOfJson),
]
const inSources = findIn(['src/**/*.ts', 'scripts/**/*.ts', 'bench/**/*.ts'], wordsOfSource)

if (values.all) for (const finding of inSources) console.log(describe(finding))
for (const finding of inDocuments) console.error(describe(finding))
console.log(`${inDocuments.length} phrases in the documentation; ${inSources.length} in the sources.`)
if (inSources.length < MOST_IN_SOURCES) console.log(`Lower MOST_IN_SOURCES in scripts/prose.ts to ${inSources.length}.`)
if (inSources.length > MOST_IN_SOURCES)
  console.error(
    `The sources may contain ${MOST_IN_SOURCES}. \`npm run check:prose -- --all\` lists them; rewrite the new ones.`,
  )
if (inDocuments.length > 0 || inSources.length > MOST_IN_SOURCES) process.exitCode = 1

type FileFinding = Finding & { readonly path: string }

function findIn(patterns: readonly string[], wordsOf: (text: string) => string): FileFinding[] {
  const paths = globSync([...patterns], { cwd: root }).filter((path) => path !== EXEMPT)
  // A wrong pattern would check nothing and find nothing.
  if (paths.length === 0) throw new Error(`There are no files ${patterns.join(', ')} in ${root}.`)
  return paths.toSorted().flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return findPhrases(wordsOf(text)).map((finding) => ({ ...finding, path }))
  })
}

function describe({ path, line, context, found, instead }: FileFinding): string {
  const place = path.endsWith('.json') ? path : `${path}:${line}`
  return `${place}: "${found}" in "…${context}…"; write: ${instead}`
}
