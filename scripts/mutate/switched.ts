/**
 * Writes many mutants into the text of one file, each behind a switch: a process decides when it starts which of them is on.
 * So one executable is enough for all mutants, and the modules that vitest has transformed are used again.
 */
import { join } from 'node:path'
import type { Mutant } from './find-mutants.ts'

export const SWITCH = join(import.meta.dirname, 'switch.ts')

/**
 * Adds the mutants, each behind a switch: while all are off, the file does what it does without them. `from`: where the code
 * imports the switch from, a path for a bundler, and a URL for Node.
 */
export function withSwitches(source: string, mutants: readonly Mutant[], from: string = SWITCH): string {
  if (mutants.length === 0) return source
  // The import is on the first line, so that the numbers of the others do not change.
  const first = `import { isOn as $on, loads as $loads } from ${JSON.stringify(from)};$loads(1);`
  return `${first}${rewrite(source, 0, source.length, outermostFirst(mutants))}\n;$loads(-1);`
}

/** Mutants of the same range come together, because the next one is in the other half of the choice. */
function outermostFirst(mutants: readonly Mutant[]): readonly Mutant[] {
  return mutants.toSorted(({ target: one }, { target: other }) => one.start - other.start || other.end - one.end)
}

function rewrite(source: string, start: number, end: number, mutants: readonly Mutant[]): string {
  let text = ''
  let at = start
  let rest = mutants
  while (rest[0]) {
    const [{ target }] = rest
    const inside = rest.filter((one) => one.target.start < target.end)
    text += source.slice(at, target.start) + choose(source, inside)
    at = target.end
    rest = rest.slice(inside.length)
  }
  return text + source.slice(at, end)
}

function choose(source: string, [first, ...inner]: readonly Mutant[]): string {
  if (!first) return ''
  const { id, change, target } = first
  const { start, end, kind } = target
  const broken = source.slice(start, change.start) + change.text + source.slice(change.end, end)
  const isSame = inner[0]?.target.start === start && inner[0].target.end === end
  const whole = isSame ? choose(source, inner) : rewrite(source, start, end, inner)
  const name = JSON.stringify(id)
  return kind === 'statement'
    ? `{ if ($on(${name})) { ${broken} } else { ${whole} } }`
    : `($on(${name}) ? (${broken}) : (${whole}))`
}
