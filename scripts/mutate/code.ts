/** Reads the code that gets mutants, and selects some of them at random. */
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mutant } from './find-mutants.ts'
import { findMutants, mutated, parses } from './find-mutants.ts'

/** The core, by the name of its parts. */
export const FOLDERS: Readonly<Record<string, string>> = {
  state: 'src/state',
  agent: 'src/agent',
  events: 'src/events',
  storage: 'src/storage',
  policy: 'src/policy',
  security: 'src/security',
}

export type Sources = ReadonlyMap<string, string>

/** The texts of the core by file. */
export function readSources(root: string): Sources {
  const files = Object.values(FOLDERS).flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
  return new Map(files.toSorted().map((file) => [file, readFileSync(join(root, file), 'utf8')]))
}

export function digest(...texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(`${text.length} ${text}`)
  return hash.digest('hex').slice(0, 16)
}

/** All that parse. Takes a minute for the whole core. */
export function allMutants(sources: Sources): Mutant[] {
  return [...sources].flatMap(([file, text]) => findMutants(file, text).filter((mutant) => parses(mutant, text)))
}

/** The same seed gives the same mutants of the same code, and a larger count gives more of them after those. */
export function sample(sources: Sources, folder: string, seed: number, count: number): Mutant[] {
  const inside = [...sources].filter(([file]) => file.startsWith(`${folder}/`))
  const found = inside.flatMap(([file, text]) => findMutants(file, text))
  const drawn = found
    .map((mutant) => ({ mutant, lot: digest(String(seed), mutant.id) }))
    .toSorted(({ lot: one }, { lot: other }) => (one < other ? -1 : 1))
  const chosen: Mutant[] = []
  for (const { mutant } of drawn) {
    if (chosen.length === count) break
    if (parses(mutant, sources.get(mutant.file) ?? '')) chosen.push(mutant)
  }
  return chosen
}

export type Shown = { readonly line: number; readonly before: string; readonly after: string }

/** The lines that a mutant changes, as they are and as they would be. */
export function show(mutant: Mutant, source: string): Shown {
  const { start, end, text } = mutant.change
  const first = source.lastIndexOf('\n', start - 1) + 1
  const next = source.indexOf('\n', end)
  const last = next === -1 ? source.length : next
  const after = mutated(mutant, source).slice(first, last + text.length - (end - start))
  return {
    line: source.slice(0, start).split('\n').length,
    before: oneLine(source.slice(first, last)),
    after: oneLine(after),
  }
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
