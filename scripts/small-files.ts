/** Finds files that are too small to be apart from the only file that uses them. Knows which code cannot move there. */
import type { SourceFile } from '../test/layers/imports.ts'
import { findBreaches } from '../test/layers/rules.ts'
import type { MeasuredFile } from './source-measures.ts'

/** A longer file may have one user. */
const MAX_LINES = 25

export type SmallFile = { readonly path: string; readonly lines: number; readonly user: string }

/**
 * Returns the small files with one user. It leaves out those that the user loads with `import()`, those that would make it longer
 * than `maxLines`, those whose imports the layers forbid to the user, and code without JSX of a user with JSX, where tests
 * could not load it.
 */
export function findSmallFiles(
  measuredFiles: readonly MeasuredFile[],
  sources: readonly SourceFile[],
  maxLines: number,
): SmallFile[] {
  const byPath = new Map(measuredFiles.map((file) => [file.path, file]))
  return sources.flatMap((source) => {
    const file = byPath.get(source.path)
    const [user, ...others] = sources.filter(({ imports }) => imports.includes(source.path))
    const userFile = user && byPath.get(user.path)
    if (!file || !userFile || others.length > 0 || file.lines > MAX_LINES) return []
    if (user.path.endsWith('.tsx') && source.path.endsWith('.ts')) return []
    if (user.defers.includes(source.path) || userFile.lines + file.ownLines > maxLines) return []
    const breaches = findBreaches(sources)
    const isForbidden = findBreaches(withMerged(sources, source, user)).some((breach) => !breaches.includes(breach))
    return isForbidden ? [] : [{ path: source.path, lines: file.lines, user: user.path }]
  })
}

/** Returns the sources as they would be with the code of `file` in its user. */
function withMerged(sources: readonly SourceFile[], file: SourceFile, user: SourceFile): SourceFile[] {
  const join = (one: readonly string[], other: readonly string[]) =>
    [...new Set([...one, ...other])].filter((path) => path !== file.path)
  const merged: SourceFile = {
    ...user,
    imports: join(user.imports, file.imports),
    loads: join(user.loads, file.loads),
    defers: join(user.defers, file.defers),
    readsEnvironment: user.readsEnvironment || file.readsEnvironment,
  }
  return sources.filter((each) => each !== file).map((each) => (each === user ? merged : each))
}
