/** What a soak writes: a line for each measurement, into a file as well, so that one that is cut off has said what it saw. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { trendOf } from './trend.ts'
import type { Holdings } from './watched-server.ts'

export type Measured = {
  readonly minutes: number
  /** While all work goes on. */
  readonly busy: Holdings
  /** After everything was deleted. */
  readonly quiet: Holdings
  readonly operations: number
  readonly failures: number
}

/**
 * What the live heap may rise by from the middle to the end, in bytes. At each measurement nothing is left of all
 * conversations, so that nothing may stay; 2 MB are less than 100 bytes for each conversation that there was in an hour.
 */
const MAX_RISE_BYTES = 2e6

export class Report {
  readonly #path: string
  readonly measured: Measured[] = []

  constructor(path: string) {
    this.#path = path
    writeFileSync(path, '')
  }

  say(line: string): void {
    appendFileSync(this.#path, `${line}\n`)
    process.stdout.write(`${line}\n`)
  }

  add(one: Measured): void {
    this.measured.push(one)
    const { minutes, busy, quiet, operations, failures } = one
    this.say(
      [
        `${minutes.toFixed(1).padStart(6)} min`,
        `at work: heap ${megabytes(busy.heap)}, external ${megabytes(busy.external)}, resident ${megabytes(busy.resident)}, ${busy.descriptors} descriptors, ${busy.processes} processes, ${busy.known} conversations, ${busy.open} open`,
        `at rest: heap ${megabytes(quiet.heap)}, external ${megabytes(quiet.external)}, resident ${megabytes(quiet.resident)}, ${quiet.descriptors} descriptors, ${quiet.processes} processes, ${quiet.known} conversations, ${quiet.open} open`,
        `${operations.toLocaleString('en')} operations, ${failures} failures`,
      ].join(' | '),
    )
  }

  /** Returns true if the live heap at rest does not rise from the middle to the end. */
  judge(): boolean {
    const heaps = this.measured.map(({ quiet }) => quiet.heap)
    const later = heaps.slice(Math.floor((heaps.length - 1) / 2))
    const { rise, noise } = trendOf(later)
    const isFlat = rise <= MAX_RISE_BYTES || rise <= noise
    this.say(
      `The live heap at rest ${isFlat ? 'has no upward trend' : 'RISES'} in the second half: ${megabytes(rise)} from its first to its last measurement, with a noise of ${megabytes(noise)}; ${megabytes(MAX_RISE_BYTES)} are allowed.`,
    )
    return isFlat
  }
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(2)} MB`
