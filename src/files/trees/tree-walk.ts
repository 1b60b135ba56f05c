/** Walks the tree of a directory in order, name by name, in bounded memory; reports links and never follows them. */
import { opendir } from 'node:fs/promises'
import { Problem } from '../../contract/problem.ts'
import { createFirstInOrder } from './first-in-order.ts'
import type { Kind, Jail, FileName } from '../jail/path-jail.ts'
import { enter, entryPath, leftOut, pathOf, withProblems } from '../jail/path-jail.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import { isTemporaryName } from '../jail/unfinished-files.ts'
import { MAX_DEPTH } from '../jail/remove-file.ts'

/** An entry of the walk; `directory` is open until the next one is requested. */
export type WalkEntry = {
  readonly directory: OpenedPath
  readonly name: Buffer
  /** Relative to the start of the walk, its own name last. */
  readonly names: readonly Buffer[]
  readonly kind: Kind
}

export type WalkOptions = {
  readonly recursive: boolean
  /** Continues after the entry with these names; it need not exist any more. */
  readonly after?: readonly Buffer[]
  /** How many names of a directory are kept at a time: as many as will be requested, if known. */
  readonly window?: number
  /** Returns true if the walk enters a directory with that name. Default: all. */
  readonly enters?: (name: Buffer) => boolean
  /** Called while a directory is read, which can have millions of names: returns true to stop the walk. */
  readonly isOver?: () => boolean
}

/** A directory with more names is read again for each further window. */
const WINDOW = 20_000

/** A directory comes before its content; names are ordered by their bytes. Unreadable directories are skipped. */
export async function* walk(jail: Jail, start: OpenedPath, options: WalkOptions): AsyncGenerator<WalkEntry> {
  yield* walkDirectory(jail, start, [], {
    window: WINDOW,
    after: [],
    isOver: () => false,
    enters: () => true,
    ...options,
  })
}

async function* walkDirectory(
  jail: Jail,
  directory: OpenedPath,
  names: readonly Buffer[],
  options: Required<WalkOptions>,
): AsyncGenerator<WalkEntry> {
  const [first, ...inner] = options.after
  // Skip the last entry of the previous page, but not the rest of its content.
  if (first && options.recursive) yield* descend(jail, directory, [...names, first], { ...options, after: inner })
  let last = first
  for (;;) {
    const foundEntries = await namesAfter(jail, directory, last, options).catch((error: unknown) => {
      // The requested directory must be readable, and no other.
      if (names.length > 0 && error instanceof Problem) return []
      throw error
    })
    for (const { name, kind } of foundEntries) {
      yield { directory, name, names: [...names, name], kind }
      if (options.recursive && kind === 'directory' && options.enters(name))
        yield* descend(jail, directory, [...names, name], { ...options, after: [] })
    }
    last = foundEntries.at(-1)?.name
    if (foundEntries.length < options.window || options.isOver()) return
  }
}

async function* descend(
  jail: Jail,
  directory: OpenedPath,
  names: readonly Buffer[],
  options: Required<WalkOptions>,
): AsyncGenerator<WalkEntry> {
  if (names.length > MAX_DEPTH) return
  // It may have gone, or may not be entered: then only its name is reported.
  // oxlint-disable-next-line typescript/no-non-null-assertion -- it begins with one name and grows
  const inner = await enter(jail, directory, names.at(-1)!).catch(leftOut)
  if (!inner) return
  await using place = inner
  yield* walkDirectory(jail, place, names, options)
}

type NamedEntry = { readonly name: Buffer; readonly kind: Kind }

/** Returns the first `count` names after `last`, without the server's files and unfinished uploads. */
async function namesAfter(
  jail: Jail,
  directory: OpenedPath,
  last: Buffer | undefined,
  { window: count, isOver }: Pick<Required<WalkOptions>, 'window' | 'isOver'>,
): Promise<readonly NamedEntry[]> {
  const firstEntries = createFirstInOrder<NamedEntry>(count, (a, b) => Buffer.compare(a.name, b.name))
  const listing = await withProblems(() =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types know of text only
    jail.io(() => opendir(entryPath(directory, '.'), { encoding: 'buffer' as never, bufferSize: READ_AHEAD })),
  )
  try {
    while (!isOver()) {
      const entry = await jail.io(() => listing.read())
      if (!entry) break
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types know of text only
      const name = entry.name as unknown as Buffer
      if (last && Buffer.compare(name, last) <= 0) continue
      if (isTemporaryName(name.toString()) || isHidden(jail, directory, name)) continue
      firstEntries.add({ name, kind: kindOf(entry) })
    }
  } finally {
    await listing.close()
  }
  return firstEntries.items()
}

/** Names per read of a directory. */
const READ_AHEAD = 256

const isHidden = (jail: Jail, directory: OpenedPath, name: FileName) => !jail.rules.judge(pathOf(directory, name)).read

type TypedEntry = { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }

function kindOf(entry: TypedEntry): Kind {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}
