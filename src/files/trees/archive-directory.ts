/**
 * Archives a directory of the workdir as a compressed tar stream; links are stored as links, pipes and devices are left
 * out.
 */
import { Readable, pipeline } from 'node:stream'
import { createGzip } from 'node:zlib'
import { TAR_END, tarHeader, tarPadding } from './tar.ts'
import type { TarEntry } from './tar.ts'
import type { JailPath } from '../jail/jail-path.ts'
import { lookAt } from './list-files.ts'
import type { JailEntry, Jail } from '../jail/path-jail.ts'
import { leftOut, openDirectoryIn, openToRead, readLink } from '../jail/path-jail.ts'
import { readRange } from '../jail/read-file.ts'
import type { WalkEntry } from './tree-walk.ts'
import { walk } from './tree-walk.ts'

/** Owns the jail from here on. Throws if there is no such directory; entries that cannot be read later are left out. */
export async function archiveDirectory(jail: Jail, path: JailPath): Promise<Readable> {
  const blocks = tarOf(jail, path)
  // Check here, so that an error in the path is reported before the first byte; and only a generator that has begun
  // cleans up.
  const first = await blocks.next()
  const all = async function* () {
    if (!first.done) yield first.value
    yield* blocks
  }
  const archive = createGzip()
  // The reader of the archive receives the error: the stream ends early.
  pipeline(Readable.from(all(), { objectMode: false }), archive, () => void blocks.return())
  return archive
}

/** Directories are closed only here: never while an entry is being read through them. */
async function* tarOf(jail: Jail, path: JailPath): AsyncGenerator<Buffer, void, void> {
  await using _jail = jail
  await using directory = await openDirectoryIn(jail, path.names)
  for await (const walkEntry of walk(jail, directory, { recursive: true })) {
    await using entry = await lookAt(jail, walkEntry)
    if (entry) yield* tarOfEntry(jail, walkEntry, entry)
  }
  yield TAR_END
}

async function* tarOfEntry(jail: Jail, walkEntry: WalkEntry, entry: JailEntry): AsyncGenerator<Buffer> {
  const { stats } = entry
  const path = Buffer.from(walkEntry.names.map((name) => name.toString('latin1')).join('/'), 'latin1')
  const plain = { path, mode: Number(stats.mode), mtime: Number(stats.mtimeMs) / 1000, size: 0 }
  if (entry.kind === 'directory') yield tarHeader({ ...plain, kind: 'directory' })
  else if (entry.kind === 'file') yield* tarOfFile(jail, entry, { ...plain, kind: 'file' })
  else if (entry.kind === 'symlink') {
    const target = await readLink(jail, walkEntry.directory, walkEntry.name).catch(leftOut)
    if (target) yield tarHeader({ ...plain, kind: 'symlink', target })
  }
}

/** The header has promised a size: bytes added meanwhile are left out, missing ones become zeros. */
async function* tarOfFile(jail: Jail, entry: JailEntry, header: TarEntry): AsyncGenerator<Buffer> {
  const file = await openToRead(jail, entry).catch(leftOut)
  if (!file) return
  try {
    const size = Number((await jail.io(() => file.stat({ bigint: true }))).size)
    yield tarHeader({ ...header, size })
    let sentBytes = 0
    for await (const piece of readRange(jail, file, 0, size)) {
      sentBytes += piece.length
      yield piece
    }
    yield* zeros(size - sentBytes)
    yield tarPadding(size)
  } finally {
    await file.close()
  }
}

const ZEROS = Buffer.alloc(64 * 1024)

function* zeros(count: number): Generator<Buffer> {
  for (let remainingBytes = count; remainingBytes > 0; remainingBytes -= ZEROS.length)
    yield ZEROS.subarray(0, remainingBytes)
}
