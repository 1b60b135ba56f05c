/** Deny rules about files, for what a tool has opened: names can be links by then, and a search meets files by itself. */
import { matchRule } from './match-rule.ts'
import { createDisk } from './disk.ts'
import type { PlacesOptions } from './places.ts'
import { Places } from './places.ts'
import { programOfGit } from './git/repository.ts'
import { holdsLinks, isDirectory, realPath } from './links/real-path.ts'
import type { RuleSet } from './rules/rule-set.ts'

/** Whether a rule denies access to the file at a real path. */
export type DeniedFiles = (path: string, access: 'read' | 'write') => boolean

/** Undefined without such rules, as in most conversations. */
export function deniedFiles(
  { deny }: Pick<RuleSet, 'deny'>,
  where: Pick<PlacesOptions, 'workdir' | 'additionalDirectories' | 'homes'>,
): DeniedFiles | undefined {
  const rules = deny.filter(({ kind }) => kind === 'read' || kind === 'edit')
  if (rules.length === 0) return undefined
  return (path, access) => {
    const places = new Places({ ...where, realPath, isDirectory, holdsLinks, programOfGit, disk: createDisk() })
    const action = { kind: access === 'read' ? 'read' : 'edit', paths: [path] } as const
    return rules.some((rule) => matchRule(rule, { tool: '', action, places }) === 'yes') || places.effort.isSpent
  }
}
