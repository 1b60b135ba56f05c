/**
 * Finds which test file reaches which mutants, by running each once. Notes are kept until the test or the core changes.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { digest } from './code.ts'
import type { Mutant } from './find-mutants.ts'
import { LOADED, OWNER } from './switch.ts'

/** What one run of a test file showed. */
export type Reach = {
  readonly test: string
  /** The digest of the text of the test file. */
  readonly digest: string
  /** A test that fails without a mutant says nothing about one. */
  readonly passed: boolean
  readonly ms: number
  readonly seen: Seen
  /** The part of `seen` that ran while a module was loaded. */
  readonly loaded?: Seen
}

/** Numbers of mutants by file. */
type Seen = Readonly<Record<string, readonly number[]>>

export class ReachNotes {
  readonly #root: string
  readonly #file: string
  readonly #notes: string
  readonly #byTest = new Map<string, Reach>()

  constructor(root: string, state: string) {
    this.#root = root
    this.#file = join(state, 'reach.jsonl')
    this.#notes = join(state, 'notes')
    mkdirSync(state, { recursive: true })
    for (const reach of readLines<Reach>(this.#file)) this.#byTest.set(reach.test, reach)
  }

  /** The directory for the notes of the processes. */
  get directory(): string {
    return this.#notes
  }

  /** The tests that are not noted as they are now, or that failed. */
  missing(tests: readonly string[]): string[] {
    return tests.filter((test) => {
      const known = this.#byTest.get(test)
      return known?.digest !== this.digestOf(test) || !known.passed
    })
  }

  /** False when the tests ran without mutants. */
  isAnyReached(): boolean {
    return [...this.#byTest.values()].some(({ seen }) => Object.keys(seen).length > 0)
  }

  digestOf(test: string): string {
    return digest(readFileSync(join(this.#root, test), 'utf8'))
  }

  /** Notes the shorter time: with few mutants in the code a test takes less time than with all. */
  passedIn(test: string, ms: number): void {
    const known = this.#byTest.get(test)
    if (known && known.ms > ms) this.#byTest.set(test, { ...known, ms })
  }

  /** Takes over what the processes of a test file wrote. */
  add(test: string, { passed, ms }: { readonly passed: boolean; readonly ms: number }): void {
    const reach = { test, digest: this.digestOf(test), passed, ms, ...this.#collect(test) }
    this.#byTest.set(test, reach)
    appendFileSync(this.#file, `${JSON.stringify(reach)}\n`)
  }

  /**
   * The tests that reach a mutant: first those in the folder with the name of that of the code, then the faster ones. Code that
   * runs when its module is loaded runs once in a process: it counts as reached by those that reach anything in its file,
   * or in the files that import it, and by those in the folder with its name.
   */
  testsOf({ id, file, ...mutant }: Mutant, tests: readonly string[], importers: readonly string[]): Reach[] {
    const number = Number(id.slice(id.lastIndexOf(':') + 1))
    const isStatic =
      mutant.isStatic || [...this.#byTest.values()].some(({ loaded }) => loaded?.[file]?.includes(number))
    const known = tests.flatMap((test) => this.#byTest.get(test) ?? []).filter(({ passed }) => passed)
    const folder = file.slice('src/'.length, file.lastIndexOf('/') + 1)
    const isNear = ({ test }: Reach): boolean => test.startsWith(`test/${folder}`)
    const reaches = (reach: Reach): boolean =>
      isStatic
        ? isNear(reach) || [file, ...importers].some((one) => reach.seen[one] !== undefined)
        : (reach.seen[file]?.includes(number) ?? false)
    return known
      .filter(reaches)
      .toSorted((one, other) => Number(isNear(other)) - Number(isNear(one)) || one.ms - other.ms)
  }

  #collect(test: string): Pick<Reach, 'seen' | 'loaded'> {
    const notes = this.#linesOf(test).map((line) => ({ id: line.replace(LOADED, ''), isLoaded: line.endsWith(LOADED) }))
    const loaded = notes.filter(({ isLoaded }) => isLoaded)
    return { seen: byFile(notes.map(({ id }) => id)), loaded: byFile(loaded.map(({ id }) => id)) }
  }

  /** Returns what all processes of a test file wrote. */
  #linesOf(test: string): string[] {
    const lines: string[] = []
    for (const directory of existsSync(this.#notes) ? readdirSync(this.#notes) : []) {
      const path = join(this.#notes, directory)
      const owner = join(path, OWNER)
      if (!existsSync(owner) || readFileSync(owner, 'utf8') !== join(this.#root, test)) continue
      for (const name of readdirSync(path))
        if (name !== OWNER) lines.push(...readFileSync(join(path, name), 'utf8').split('\n').filter(Boolean))
      rmSync(path, { recursive: true })
    }
    return lines
  }
}

function byFile(ids: readonly string[]): Seen {
  const numbers = Map.groupBy(new Set(ids), (id) => id.slice(0, id.lastIndexOf(':')))
  const entries = [...numbers].map(([file, all]) => [file, all.map((id) => Number(id.slice(file.length + 1)))] as const)
  return Object.fromEntries(entries)
}

/** A last line that was cut off counts as not written. */
export function readLines<T>(file: string): T[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as T]
    } catch {
      return []
    }
  })
}
