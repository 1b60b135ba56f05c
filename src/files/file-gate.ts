/** The only file that decides which paths the editor, or a client of the API, may touch: the server's own are not for them. */
import { FileRefusal } from './file-refusal.ts'
import { openAt } from './opened-path.ts'

export type FileRules = {
  /** Files and directories that are neither shown nor changed, with all they hold. */
  readonly forbidden: readonly string[]
  /** Directories that are open again, although they lie in a forbidden one. Of those that hold a path the innermost decides. */
  readonly permitted?: readonly string[]
  /** As `permitted`, but nothing in there is changed. */
  readonly readable?: readonly string[]
}

export type Gate = { check(realPath: string, access: 'read' | 'write'): Promise<void> }

/** Throws a `FileRefusal` for what the rules do not allow. They are asked for each time: the workdir may change. */
export function createGate(rules: () => FileRules): Gate {
  return {
    async check(realPath, access) {
      const judged = (await readRules(rules())).judge(realPath)
      if (judged[access]) return
      const why = judged.read
        ? 'can be viewed, but not changed'
        : 'is not open to this tool, as it belongs to the server'
      throw new FileRefusal(`${realPath} ${why}; work in your own directory.`, { isForbidden: true })
    },
  }
}

export type FileAccess = { readonly read: boolean; readonly write: boolean }

/** The rules as they are at one moment; for many paths at once. */
export type Judge = {
  readonly judge: (realPath: string) => FileAccess
  /** Whether there is anything in a directory that must not be changed. */
  readonly holdsForbidden: (realPath: string) => boolean
}

export async function readRules(rules: FileRules): Promise<Judge> {
  // The roots' real paths each time: they too can be made, or come to be links, at any moment.
  const real = await Promise.all(listRules(rules).map(async (rule) => ({ ...rule, root: await realRoot(rule.root) })))
  return {
    judge(realPath) {
      const holding = real.filter(({ root }) => isInside(realPath, root))
      return (
        holding.reduce<Rule | undefined>(
          (inner, rule) => (inner && inner.root.length > rule.root.length ? inner : rule),
          undefined,
        ) ?? OPEN
      )
    },
    holdsForbidden: (realPath) =>
      real.some(({ root, write }) => !write && root !== realPath && isInside(root, realPath)),
  }
}

/** What no rule is about. */
const OPEN: FileAccess = { read: true, write: true }

type Rule = FileAccess & { readonly root: string }

function listRules({ forbidden, permitted = [], readable = [] }: FileRules): Rule[] {
  return [
    ...permitted.map((root) => ({ root, read: true, write: true })),
    ...readable.map((root) => ({ root, read: true, write: false })),
    // Last, so that it wins over another rule for the same root.
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

const isInside = (path: string, root: string) =>
  path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`)
