/** Walks the tree of a directory in order, name by name, in bounded memory; links are told of and never followed. */
import { opendir } from 'node:fs/promises'
import { Problem } from '../../contract/problem.ts'
import { createFirstInOrder } from './first-in-order.ts'
import type { Kind, Jail, FileName } from '../path-jail.ts'
import { enter, entryPath, pathOf, told } from '../path-jail.ts'
import type { OpenedPath } from '../opened-path.ts'
import { isTemporaryName } from '../unfinished-files.ts'
import { MAX_DEPTH } from '../remove-file.ts'

/** What is met on the way; `directory` is open until the next one is asked for. */
export type Met = {
  readonly directory: OpenedPath
  readonly name: Buffer
  /** From the start of the walk, its own name last. */
  readonly names: readonly Buffer[]
  readonly kind: Kind
}

export type WalkOptions = {
  readonly recursive: boolean
  /** Goes on after what had these names; it need not be there any more. */
  readonly after?: readonly Buffer[]
  /** How many names of a directory are held at a time: as many as will be asked for, where that is known. */
  readonly window?: number
  /** Asked while a directory is read, which can have millions of names: whether the walk is given up. */
  readonly isOver?: () => boolean
}

/** A directory of more names is read again for the next so many. */
const WINDOW = 20_000

/** A directory comes before what it holds; names come in the order of their bytes. What cannot be looked into is passed over. */
export async function* walk(jail: Jail, start: OpenedPath, options: WalkOptions): AsyncGenerator<Met> {
  yield* walkDirectory(jail, start, [], { window: WINDOW, after: [], isOver: () => false, ...options })
}

async function* walkDirectory(
  jail: Jail,
  directory: OpenedPath,
  names: readonly Buffer[],
  options: Required<WalkOptions>,
): AsyncGenerator<Met> {
  const [first, ...inner] = options.after
  // What was met last is not met again, but the rest of what it holds.
  if (first && options.recursive) yield* descend(jail, directory, [...names, first], { ...options, after: inner })
  let last = first
  for (;;) {
    const found = await namesAfter(jail, directory, last, options).catch((error: unknown) => {
      // Only the directory that was asked for has to be readable.
      if (names.length > 0 && error instanceof Problem) return []
      throw error
    })
    for (const { name, kind } of found) {
      yield { directory, name, names: [...names, name], kind }
      if (options.recursive && kind === 'directory')
        yield* descend(jail, directory, [...names, name], { ...options, after: [] })
    }
    last = found.at(-1)?.name
    if (found.length < options.window || options.isOver()) return
  }
}

async function* descend(
  jail: Jail,
  directory: OpenedPath,
  names: readonly Buffer[],
  options: Required<WalkOptions>,
): AsyncGenerator<Met> {
  if (names.length > MAX_DEPTH) return
  // It may have gone, or may not be entered: then it is told by its name alone.
  // oxlint-disable-next-line typescript/no-non-null-assertion -- it begins with one name and grows
  const inner = await enter(jail, directory, names.at(-1)!).catch(() => undefined)
  if (!inner) return
  await using place = inner
  yield* walkDirectory(jail, place, names, options)
}

type Named = { readonly name: Buffer; readonly kind: Kind }

/** The first `count` names after `last`, without those of the server and of what has not come in whole. */
async function namesAfter(
  jail: Jail,
  directory: OpenedPath,
  last: Buffer | undefined,
  { window: count, isOver }: Pick<Required<WalkOptions>, 'window' | 'isOver'>,
): Promise<readonly Named[]> {
  const found = createFirstInOrder<Named>(count, (a, b) => Buffer.compare(a.name, b.name))
  const listing = await told(() =>
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
      found.add({ name, kind: kindOf(entry) })
    }
  } finally {
    await listing.close()
  }
  return found.items()
}

/** Names that the system is asked for at a time. */
const READ_AHEAD = 256

const isHidden = (jail: Jail, directory: OpenedPath, name: FileName) => !jail.rules.judge(pathOf(directory, name)).read

type Typed = { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }

function kindOf(entry: Typed): Kind {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}
