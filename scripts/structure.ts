/**
 * `npm run structure` measures `src/`. With `--check` it fails if a part is over a limit of `structure-limits.ts`. With
 * `--trace` it also counts what runs for a message and for other journeys, and with `--list` it names those files.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readSources } from '../test/layers/imports.ts'
import { cyclesIn } from '../test/layers/rules.ts'
import type { Arrow } from '../test/layers/folder-arrows.ts'
import { arrowsBetween, modulesOf, mutualPairs, nestedPairs, upwardArrows } from '../test/layers/folder-arrows.ts'
import type { MeasuredFile } from './source-measures.ts'
import { foldersOf, measureFolder, quantile, repeatedTypes } from './source-measures.ts'
import { findSmallFiles } from './small-files.ts'
import { EXCEPTIONS, LIMITS, REPEATED_TYPES, USERS_OF_SMALL_FILES } from './structure-limits.ts'

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})

/** The fold of the state and the decisions about it: they know no tool, no process and no file. */
const CORE = ['state/state.ts', 'state/intents.ts']

const root = join(values.root, 'src')
const files = measureFolder(root)
const sources = readSources(root)
const cycles = cyclesIn(sources)
const arrows = arrowsBetween(sources)
const smallFiles = values.check ? findSmallFiles(files, sources, LIMITS.fileLines) : []

console.log(describe(files))
if (values.check) {
  for (const loose of looseExceptions(files)) console.log(loose)
  const faults = [...faultsOf(files), ...cycles, ...faultsOfSmallFiles()]
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
if (values.trace) await printJourneys()

function faultsOf(measured: readonly MeasuredFile[]): string[] {
  const lengths = measured.flatMap(({ functions }) => functions.map(({ lines }) => lines))
  const p90 = quantile(lengths, 0.9)
  return [
    ...measured.flatMap(({ path, lines }) => faultOf(path, lines, LIMITS.fileLines, 'lines')),
    ...measured.flatMap(({ path, functions }) =>
      functions.flatMap(({ name, lines }) => faultOf(`${path}#${name}`, lines, LIMITS.functionLines, 'lines')),
    ),
    ...faultOf('a tenth of the functions', p90, LIMITS.functionLinesP90, 'lines or more'),
    ...newlyRepeatedTypes(measured).map(
      ([name, paths]) => `${name} is exported by ${paths.join(' and ')}; rename one.`,
    ),
  ]
}

function newlyRepeatedTypes(measured: readonly MeasuredFile[]): [string, readonly string[]][] {
  return [...repeatedTypes(measured)].filter(([name]) => !REPEATED_TYPES.has(name))
}

function faultsOfSmallFiles(): string[] {
  const found = smallFiles.filter(({ user }) => !Object.hasOwn(USERS_OF_SMALL_FILES, user))
  return found.map(({ path, lines, user }) => `${path} has ${lines} lines and one user; move it into ${user}.`)
}

/** Exceptions that can be lowered or removed: reported, so that they are, but no reason to fail. */
function looseExceptions(measured: readonly MeasuredFile[]): string[] {
  const sizes = new Map([
    ...measured.map(({ path, lines }) => [path, lines] as const),
    ...measured.flatMap(({ path, functions }) =>
      functions.map(({ name, lines }) => [`${path}#${name}`, lines] as const),
    ),
  ])
  const others = Object.keys(USERS_OF_SMALL_FILES).filter((path) => !smallFiles.some(({ user }) => user === path))
  const unused = others.map((path) => `Remove ${path} in scripts/structure-limits.ts: it needs no exception.`)
  const lower = Object.entries(EXCEPTIONS).flatMap(([part, { atMost }]) => {
    const size = sizes.get(part) ?? 0
    return size < atMost ? [`Lower or remove ${part} in scripts/structure-limits.ts: it has ${size} lines.`] : []
  })
  return [...lower, ...unused]
}

function faultOf(part: string, size: number, limit: number, unit: string): string[] {
  const atMost = EXCEPTIONS[part]?.atMost ?? limit
  return size > atMost ? [`${part} has ${size} ${unit}; at most ${atMost} are allowed. Split it.`] : []
}

/** Tables in Markdown: sizes, and how the parts depend on each other. */
function describe(measured: readonly MeasuredFile[]): string {
  const sum = (value: (file: MeasuredFile) => number) => measured.reduce((total, file) => total + value(file), 0)
  const ofFiles = measured.map(({ lines }) => lines)
  const ofFunctions = measured.flatMap(({ functions }) => functions.map(({ lines }) => lines))
  const [pairs, nested] = [mutualPairs(arrows), nestedPairs(arrows)]
  return [
    `Files: ${measured.length}. Folders: ${foldersOf(measured).length}. Lines: ${sum(({ lines }) => lines)}.`,
    '',
    '| lines of | median | 90 % have at most | longest |',
    '|---|---|---|---|',
    `| a file | ${lengthsOf(ofFiles)} |`,
    `| a function | ${lengthsOf(ofFunctions)} |`,
    '',
    `Assertions: ${sum(({ nonNull }) => nonNull)} with \`!\`, ${sum(({ casts }) => casts)} with \`as\`.`,
    `Import cycles: ${cycles.length}. Arrows between folders: ${arrows.length}, of which ${upwardArrows(arrows).length} point up.`,
    `Pairs of folders that import each other: ${pairs.length}.`,
    ...pairs.map(describePair),
    `Pairs of a folder and one inside it that import each other, the inner one types alone: ${nested.length}.`,
    ...nested.map(describePair),
    ...CORE.filter((path) => sources.some((each) => each.path === path)).map(
      (path) => `Modules that ${path} loads: ${modulesOf(path, sources).size}.`,
    ),
  ].join('\n')
}

function describePair([{ from, to, imports }, back]: readonly [Arrow, Arrow]): string {
  return `- ${from} and ${to}: ${imports} and ${back.imports} imports`
}

function lengthsOf(lengths: readonly number[]): string {
  return [0.5, 0.9, 1].map((share) => quantile(lengths, share)).join(' | ')
}

async function printJourneys(): Promise<void> {
  // Loaded for this alone: it loads the server.
  const { sizeOf, traceJourneys } = await import('./journeys.ts')
  console.log('\n| journey | files | folders | functions | calls |\n|---|---|---|---|---|')
  for (const journey of await traceJourneys()) {
    const size = sizeOf(journey)
    console.log(`| ${journey.name} | ${size.files} | ${size.folders} | ${size.functions} | ${size.calls} |`)
    if (values.list)
      for (const [path, functions] of [...journey.files].toSorted(([one], [other]) => (one < other ? -1 : 1)))
        console.log(`- ${path}: ${functions.length}`)
  }
  // The server leaves shells and connections for a while.
  process.exit()
}
