/**
 * The only file that decides which paths the editor, or a client of the API, may access: the server's own files are
 * excluded.
 */
import { isInside } from './is-inside.ts'
import { FileRefusal } from './file-refusal.ts'
import { openAt } from './opened-path.ts'

export type FileRules = {
  /** Files and directories that are neither shown nor changed, with everything inside. */
  readonly forbidden: readonly string[]
  /** Exceptions inside forbidden directories. For each path, the innermost rule applies. */
  readonly permitted?: readonly string[]
  /** The paths are like `permitted`, but read-only. */
  readonly readable?: readonly string[]
  /**
   * The paths are like `permitted` and `readable`, but real: a link that takes the place of one opens nothing of where
   * it leads.
   */
  readonly own?: readonly string[]
  readonly shown?: readonly string[] | undefined
  /** Returns true if the user denies the path besides, which is a real path. */
  readonly denied?: ((realPath: string, access: 'read' | 'write') => boolean) | undefined
}

export type Gate = { check(realPath: string, access: 'read' | 'write'): Promise<void> }

/** Throws a `FileRefusal` if the rules do not allow it. Calls `rules` each time: the workdir may change. */
export function createGate(rules: () => FileRules): Gate {
  return {
    async check(realPath, access) {
      const givenRules = rules()
      if (givenRules.denied?.(realPath, access))
        throw new FileRefusal(`A deny rule of this conversation holds for ${realPath}.`, { isForbidden: true })
      const judgedAccess = (await readRules(givenRules)).judge(realPath)
      if (judgedAccess[access]) return
      const why = judgedAccess.read
        ? 'can be viewed, but not changed'
        : 'is not accessible to this tool, because it belongs to the server'
      throw new FileRefusal(`${realPath} ${why}; work in your own directory.`, { isForbidden: true })
    },
  }
}

export type FileAccess = { readonly read: boolean; readonly write: boolean }

/** The rules at one moment; for many paths at once. */
export type Judge = {
  readonly judge: (realPath: string) => FileAccess
  /** Returns true if the directory contains anything that must not be changed. */
  readonly holdsForbidden: (realPath: string) => boolean
}

export async function readRules(rules: FileRules): Promise<Judge> {
  // Resolve the roots' real paths each time: they can also be created, or become links, at any moment.
  const foundRules = listRules(rules).map(async (rule) => ({ ...rule, root: await realRoot(rule.root) }))
  const shownRules = (rules.shown ?? []).map((root) => ({ root, read: true, write: false }))
  const writable = (rules.own ?? []).map((root) => ({ root, read: true, write: true }))
  const real = [...shownRules, ...writable, ...(await Promise.all(foundRules))]
  return {
    judge(realPath) {
      const holding = real.filter(({ root }) => isInside(realPath, root))
      const own =
        holding.reduce<Rule | undefined>(
          (inner, rule) => (inner && inner.root.length > rule.root.length ? inner : rule),
          undefined,
        ) ?? OPEN
      const { denied } = rules
      return denied
        ? { read: own.read && !denied(realPath, 'read'), write: own.write && !denied(realPath, 'write') }
        : own
    },
    holdsForbidden: (realPath) =>
      real.some(({ root, write }) => !write && root !== realPath && isInside(root, realPath)),
  }
}

/** The access outside all rules. */
const OPEN: FileAccess = { read: true, write: true }

type Rule = FileAccess & { readonly root: string }

function listRules({ forbidden, permitted = [], readable = [] }: FileRules): Rule[] {
  return [
    ...permitted.map((root) => ({ root, read: true, write: true })),
    ...readable.map((root) => ({ root, read: true, write: false })),
    // Last, so that it overrides another rule for the same root.
    ...forbidden.map((root) => ({ root, read: false, write: false })),
  ]
}

async function realRoot(path: string): Promise<string> {
  try {
    await using place = await openAt(path)
    return place.path
  } catch {
    return path
  }
}
