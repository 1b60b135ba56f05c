/** What `.gitignore` files leave out. Of several patterns that match, the last one of the deepest file counts. */
import { compileGlob } from '../../../files/search/glob.ts'

type Rule = {
  /** The directory of the file, with a `/` at its end; empty: the workdir. */
  readonly directory: string
  readonly matches: (path: string) => boolean
  readonly isKept: boolean
  readonly isForDirectories: boolean
}

/** People write fewer, and each is compared with each path. */
const MAX_RULES = 2000

export class IgnoredFiles {
  #rules: readonly Rule[] = []

  add(directory: string, text: string): void {
    const rules = text.split(/\r?\n/).flatMap((line) => ruleOf(directory, line))
    // Files of deeper directories can be read before others that are less deep.
    this.#rules = [...this.#rules, ...rules]
      .slice(0, MAX_RULES)
      .toSorted((a, b) => a.directory.length - b.directory.length)
  }

  /** `path`: relative to the workdir. Its directories are not considered. */
  has(path: string, isDirectory: boolean): boolean {
    if (path === '.git' || path.endsWith('/.git')) return true
    const last = this.#rules.findLast(
      ({ directory, matches, isForDirectories }) =>
        path.startsWith(directory) && (isDirectory || !isForDirectories) && matches(path.slice(directory.length)),
    )
    return last !== undefined && !last.isKept
  }
}

function ruleOf(directory: string, line: string): Rule[] {
  const text = line.trimEnd()
  if (text === '' || text.startsWith('#')) return []
  const isKept = text.startsWith('!')
  const pattern = (isKept ? text.slice(1) : text).replace(/^\\(?=[#!])/, '')
  const isForDirectories = pattern.endsWith('/')
  return [{ directory, matches: compileGlob(pattern.replace(/\/$/, '')), isKept, isForDirectories }]
}
