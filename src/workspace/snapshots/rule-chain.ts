/** The rules of `.gitignore` files that hold for the names in one directory: its own and those of the directories above. */
import type { Slices } from '../../lib/time-slices.ts'
import type { IgnoreRules } from './ignore-rules.ts'
import { matchIgnoreRules, readIgnoreRules } from './ignore-rules.ts'

/** The last one decides. `base`: the path of the directory that the rules are of. */
export type RuleChain = readonly Link[]
type Link = { readonly base: string; readonly rules: IgnoreRules; readonly bytes: number }

/** All rules of a chain together are read up to here. */
const MAX_BYTES = 1024 ** 2

/** Returns how much of one more file is read. */
export const bytesLeft = (chain: RuleChain): number => MAX_BYTES - chain.reduce((sum, { bytes }) => sum + bytes, 0)

/** `text`: of a file in the directory `base`. */
export function withRules(chain: RuleChain, base: string, text: string): RuleChain {
  const own = readIgnoreRules(text).map((rules, index) => ({ base, rules, bytes: index === 0 ? text.length : 0 }))
  return own.length > 0 ? [...chain, ...own] : chain
}

/** An agent writes the rules: however long they take, other work gets its turns, and `signal` ends it. */
export async function isIgnored(
  chain: RuleChain,
  { path, isDirectory }: { readonly path: string; readonly isDirectory: boolean },
  { slices, signal }: { readonly slices: Slices; readonly signal: AbortSignal },
): Promise<boolean> {
  for (let index = chain.length - 1; index >= 0; index--) {
    const rest = slices.rest()
    if (rest) await rest.then(() => signal.throwIfAborted())
    const link = chain[index]
    const inner = link && link.base !== '' ? path.slice(link.base.length + 1) : path
    const ignores = link && matchIgnoreRules(link.rules, inner, isDirectory)
    if (ignores !== undefined) return ignores
  }
  return false
}

export const NO_RULES: RuleChain = []
/** What is left out where there is no `.gitignore`: what programs make and can make again. */
export const GENERATED = withRules(
  [],
  '',
  ['node_modules', '.venv', 'venv', '__pycache__', 'target', '.tox', '.mypy_cache', '.pytest_cache', '.gradle']
    .map((name) => `${name}/`)
    .join('\n'),
)
