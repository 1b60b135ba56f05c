/**
 * Decides in a running process which mutant is on. It is part of the code that has mutants, under vitest and in the executable.
 * What it does is in a variable, or in a file next to the executable, because tests choose the variables of what they start.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Orders = {
  /** The id of the mutant that is on. */
  readonly on?: string
  /** The directory for notes, by test file, of the mutants that are reached. */
  readonly notes?: string
}

export const ORDERS_VARIABLE = 'AGENT_SERVER_MUTANT'

/** The file with the name of the test file, in a directory with notes. */
export const OWNER = 'owner'

/**
 * The mark, in notes, of what ran while its module was loaded: that happens once in a process, for whichever test is
 * first.
 */
export const LOADED = '!'

/** The file with the orders for an executable. */
export const ordersFile = (executable: string): string => `${executable}.mutant`

const { on, notes } = readOrders()
const seen = new Set<string>()
let fresh: string[] = []
/** How many modules with mutants are being loaded. */
let loading = 0
// Tests replace the clock.
const { setImmediate } = globalThis

/**
 * Returns true if this mutant is on. Called by the code that has mutants.
 * @public
 */
export function isOn(id: string): boolean {
  if (notes !== undefined && !seen.has(id)) note(id)
  return id === on
}

/**
 * Counts the modules that have begun to run, and those that have run. Called by the code that has mutants.
 * @public
 */
export function loads(change: 1 | -1): void {
  loading += change
}

/** Notes what the next test file reaches, also if an earlier one has reached it in this process. */
export function noteAgain(): void {
  seen.clear()
}

/** Writes down what was reached. The directory for temporary files says for which test file. */
export function writeNotes(): void {
  const [directory] = /(?<=\/)f-[^/]+/.exec(process.env['TMPDIR'] ?? '') ?? []
  if (notes === undefined || directory === undefined || fresh.length === 0) return
  const text = fresh.join('\n')
  fresh = []
  try {
    mkdirSync(join(notes, directory), { recursive: true })
    appendFileSync(join(notes, directory, String(process.pid)), `${text}\n`)
  } catch {
    // A process of another user has nothing to write there.
  }
}

function note(id: string): void {
  seen.add(id)
  fresh.push(loading > 0 ? `${id}${LOADED}` : id)
  // A server that is killed has no other time to write.
  if (fresh.length === 1) setImmediate(writeNotes).unref()
}

function readOrders(): Orders {
  const file = ordersFile(process.execPath)
  const text = process.env[ORDERS_VARIABLE] ?? (existsSync(file) ? readFileSync(file, 'utf8') : '{}')
  return JSON.parse(text) as Orders
}
