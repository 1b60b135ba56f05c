/** Reads the output of `git status --porcelain=v2 --branch -z`. */
import type { FileDiffStatus } from '../../contract/diff.ts'
import type { GitStatus, GitStatusEntry } from '../../contract/git.ts'

export const CHANGES: Readonly<Record<string, FileDiffStatus>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  T: 'type_changed',
}

/** How many fields are before the path, by the kind of a record. */
const FIELDS: Readonly<Record<string, number>> = { '1': 8, '2': 9, u: 10, '?': 1 }

export function parseStatus(output: Buffer): Omit<GitStatus, 'next_page_id'> {
  const records = output.toString().split('\0').values()
  const items: GitStatusEntry[] = []
  let commit: string | null = null
  let branch: string | null = null
  for (const record of records) {
    const kind = record[0] ?? ''
    if (kind === '#') {
      const [, name, value = ''] = record.split(' ')
      if (name === 'branch.oid' && value !== '(initial)') commit = value
      if (name === 'branch.head' && value !== '(detached)') branch = value
    }
    if (FIELDS[kind] === undefined) continue
    const { fields, path } = splitFields(record, FIELDS[kind])
    // A path from before a rename is a record too.
    const oldPath = kind === '2' ? records.next().value : undefined
    items.push({ path, ...(oldPath !== undefined && { old_path: oldPath }), ...stateOf(kind, fields) })
  }
  return { commit, branch, items }
}

function stateOf(kind: string, [, xy = '', submodule = '']: readonly string[]): Omit<GitStatusEntry, 'path'> {
  if (kind === '?') return { untracked: true }
  const isSubmodule = submodule.startsWith('S') && { submodule: true as const }
  if (kind === 'u') return { conflict: true, ...isSubmodule }
  const stagedChange = CHANGES[xy[0] ?? '']
  const unstagedChange = CHANGES[xy[1] ?? '']
  return {
    ...(stagedChange && { staged: stagedChange }),
    ...(unstagedChange && { unstaged: unstagedChange }),
    ...isSubmodule,
  }
}

/** The path comes last and may have spaces. */
function splitFields(record: string, count: number): { readonly fields: readonly string[]; readonly path: string } {
  let at = 0
  const fields: string[] = []
  for (let field = 0; field < count; field++) {
    const end = record.indexOf(' ', at)
    fields.push(record.slice(at, end))
    at = end + 1
  }
  return { fields, path: record.slice(at) }
}
