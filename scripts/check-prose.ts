/**
 * `npm run check:prose`: fails if the documentation, the API descriptions, the sources or the names of tests contain a phrase of
 * `prose.ts`; if a doc comment begins without a subject or was broken in mid-sentence, or the name of a test continues another
 * one; or if a name in any of the code has one of the vague words, or a declaration, a parameter or a local variable in `src` a
 * bare participle as its name.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findBareLocals } from './bare-names.ts'
import type { Finding } from './prose.ts'
import {
  findBareNames,
  findBeginnings,
  findBrokenLines,
  findNames,
  findPhrases,
  findTestNames,
  identifiersOf,
  namesOfTests,
  wordsOfJson,
  wordsOfMarkdown,
  wordsOfSource,
} from './prose.ts'

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const { root } = values

/** These files quote the phrases. */
const EXEMPT: ReadonlySet<string> = new Set(['scripts/prose.ts', 'test/scripts/check-prose.test.ts'])

const findings = [
  ...findIn(['README.md', 'CHANGELOG.md', '.env.example', '{docs,bench,examples,src}/*.md'], wordsOfMarkdown),
  ...findIn(['openapi/*.json'], wordsOfJson),
  ...findIn(['src/**/*.ts', 'scripts/**/*.ts', 'bench/**/*.ts'], wordsOfSource),
  ...findIn(['{src,scripts,bench,test/support}/**/*.{ts,tsx,mjs}'], (text) => text, findBeginnings),
  ...findIn(['{src,scripts,bench,test}/**/*.{ts,tsx,mjs}'], (text) => text, findBrokenLines),
  ...findIn(['test/**/*.test.ts', 'test/**/*-contract.ts'], namesOfTests),
  ...findIn(['test/**/*.test.ts', 'test/**/*-contract.ts'], namesOfTests, findTestNames),
  ...findIn(['{src,scripts,bench,test}/**/*.ts'], identifiersOf, findNames),
  // The names of the API stay.
  ...findIn(['src/**/*.{ts,tsx}'], identifiersOf, findBareNames).filter(
    ({ path }) => !path.startsWith('src/contract/'),
  ),
  ...findIn(['src/**/*.{ts,tsx}'], (text) => text, findBareLocals),
]

for (const finding of findings) console.error(describe(finding))
console.log(`${findings.length} phrases to rewrite.`)
if (findings.length > 0) process.exitCode = 1

type FileFinding = Finding & { readonly path: string }

function findIn(
  patterns: readonly string[],
  wordsOf: (text: string) => string,
  find: (text: string, path: string) => Finding[] = findPhrases,
): FileFinding[] {
  const paths = globSync([...patterns], { cwd: root }).filter(
    (path) => !EXEMPT.has(path) && !path.includes('/node_modules/'),
  )
  // A wrong glob pattern would find nothing, and the check would pass.
  if (paths.length === 0) throw new Error(`There are no files ${patterns.join(', ')} in ${root}.`)
  return paths.toSorted().flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return find(wordsOf(text), path).map((finding) => ({ ...finding, path }))
  })
}

function describe({ path, line, context, found, instead }: FileFinding): string {
  const place = path.endsWith('.json') ? path : `${path}:${line}`
  return `${place}: "${found}" in "…${context}…"; write: ${instead}`
}
