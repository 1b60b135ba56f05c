/** The verdicts of earlier runs with the same seed on the same code, one to a line, and the mutants called equivalent. */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readLines } from './reach.ts'
import type { Equivalent, Judged } from './report.ts'

export class Verdicts {
  readonly #file: string
  readonly #byId: Map<string, Judged>

  constructor(file: string) {
    this.#file = file
    this.#byId = new Map(readLines<Judged>(file).map((judged) => [judged.id, judged]))
  }

  /** Undefined when nothing is known, or when it had survived other tests than these. */
  get(id: string, against: string): Judged | undefined {
    const known = this.#byId.get(id)
    const isSettled = known?.verdict === 'caught' || known?.verdict === 'stuck' || known?.against === against
    return isSettled ? known : undefined
  }

  add(judged: Judged): void {
    this.#byId.set(judged.id, judged)
    appendFileSync(this.#file, `${JSON.stringify(judged)}\n`)
  }
}

export function readEquivalents(): Equivalent[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'equivalent.json'), 'utf8')) as Equivalent[]
}
