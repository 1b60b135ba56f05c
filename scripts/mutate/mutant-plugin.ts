/** A plugin for vitest and for rolldown that writes mutants into the files that they read. No file on the disk changes. */
import { relative } from 'node:path'
import type { Mutant } from './find-mutants.ts'
import { withSwitches } from './switched.ts'

/** The file with the mutants that vitest gets. */
export const MUTANTS_VARIABLE = 'AGENT_SERVER_MUTANTS'

export function mutantPlugin(root: string, mutants: readonly Mutant[]) {
  const byFile = Map.groupBy(mutants, ({ file }) => file)
  return {
    name: 'mutants',
    enforce: 'pre' as const,
    transform(code: string, path: string): { code: string; map: null } | undefined {
      const own = byFile.get(relative(root, path))
      return own && { code: withSwitches(code, own), map: null }
    },
  }
}
