/**
 * `npm run structure [-- --check | --write]`: measures `src/`. `--check` fails if a part is over a limit of
 * `structure-limits.ts` or if the table in docs/architecture.md is out of date; `--write` updates the table.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readSources } from '../test/layers/imports.ts'
import { cyclesIn } from '../test/layers/rules.ts'
import type { MeasuredFile } from './source-measures.ts'
import { foldersOf, measureFolder, quantile, repeatedTypes } from './source-measures.ts'
import { EXCEPTIONS, LIMITS, REPEATED_TYPES } from './structure-limits.ts'

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})

const MARKERS = { start: '<!-- structure -->', end: '<!-- /structure -->' }
const DOCUMENT = join(values.root, 'docs/architecture.md')

const source = join(values.root, 'src')
const files = measureFolder(source)
const cycles = cyclesIn(readSources(source))
const table = describe(files, cycles.length)

if (values.write) writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), table))
else console.log(table)
if (values.check) {
  const faults = [...faultsOf(files), ...cycles, ...staleTable()]
  for (const loose of looseExceptions(files)) console.log(loose)
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}

function faultsOf(measured: readonly MeasuredFile[]): string[] {
  const lengths = measured.flatMap(({ functions }) => functions.map(({ lines }) => lines))
  const p90 = quantile(lengths, 0.9)
  return [
    ...foldersOf(measured).flatMap((folder) => faultOf(folder.path, folder.files, LIMITS.filesPerFolder, 'files')),
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

/** Exceptions that can be lowered or removed: reported, so that they are, but no reason to fail. */
function looseExceptions(measured: readonly MeasuredFile[]): string[] {
  const sizes = new Map([
    ...foldersOf(measured).map(({ path, files: count }) => [path, count] as const),
    ...measured.map(({ path, lines }) => [path, lines] as const),
    ...measured.flatMap(({ path, functions }) =>
      functions.map(({ name, lines }) => [`${path}#${name}`, lines] as const),
    ),
  ])
  return Object.entries(EXCEPTIONS).flatMap(([part, { atMost }]) => {
    const size = sizes.get(part) ?? 0
    return size < atMost ? [`Lower or remove ${part} in scripts/structure-limits.ts: it has ${size} lines.`] : []
  })
}

function faultOf(part: string, size: number, limit: number, unit: string): string[] {
  const atMost = EXCEPTIONS[part]?.atMost ?? limit
  return size > atMost ? [`${part} has ${size} ${unit}; at most ${atMost} are allowed. Split it.`] : []
}

/** A table in Markdown: a row for each folder, and the lengths. */
function describe(measured: readonly MeasuredFile[], cycleCount: number): string {
  const sum = (value: (file: MeasuredFile) => number) => measured.reduce((total, file) => total + value(file), 0)
  const ofFiles = measured.map(({ lines }) => lines)
  const ofFunctions = measured.flatMap(({ functions }) => functions.map(({ lines }) => lines))
  return [
    '| folder | files | lines |',
    '|---|---|---|',
    ...foldersOf(measured).map(
      ({ path, files: count, lines }) => `| \`${join('src', path)}/\` | ${count} | ${lines} |`,
    ),
    `| all | ${measured.length} | ${sum(({ lines }) => lines)} |`,
    '',
    '| lines of | median | 90 % have at most | longest |',
    '|---|---|---|---|',
    `| a file | ${lengthsOf(ofFiles)} |`,
    `| a function | ${lengthsOf(ofFunctions)} |`,
    '',
    `Import cycles: ${cycleCount}. Assertions: ${sum(({ nonNull }) => nonNull)} with \`!\`, ${sum(({ casts }) => casts)} with \`as\`.`,
  ].join('\n')
}

function lengthsOf(lengths: readonly number[]): string {
  return [0.5, 0.9, 1].map((share) => quantile(lengths, share)).join(' | ')
}

function withTable(document: string, content: string): string {
  const { before, after } = aroundTable(document)
  return `${before}${MARKERS.start}\n${content}\n${MARKERS.end}${after}`
}

function aroundTable(document: string): { before: string; inside: string; after: string } {
  const [start, end] = [document.indexOf(MARKERS.start), document.indexOf(MARKERS.end)]
  if (start === -1 || end < start) throw new Error(`${DOCUMENT} has no ${MARKERS.start} … ${MARKERS.end}.`)
  return {
    before: document.slice(0, start),
    inside: document.slice(start + MARKERS.start.length, end).trim(),
    after: document.slice(end + MARKERS.end.length),
  }
}

/** Numbers change with every commit: the table is out of date when it lacks a folder, or when a number is far off. */
function staleTable(): string[] {
  const { inside } = aroundTable(readFileSync(DOCUMENT, 'utf8'))
  const [written, measured] = [numbersIn(inside), numbersIn(table)]
  const isFresh =
    withoutNumbers(inside) === withoutNumbers(table) &&
    measured.every((number, index) => isNear(written[index] ?? NaN, number))
  return isFresh ? [] : ['The table in docs/architecture.md is out of date. Run `npm run structure -- --write`.']
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/\d+/g)].map(([digits]) => Number(digits))
}

function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/g, '0')
}

function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= Math.max(5, other / 4)
}
