/** Receives several files: writes each to a temporary name first, and publishes none before all are complete. */
import { createHash } from 'node:crypto'
import { Problem } from '../contract/problem.ts'
import type { JailPath } from './jail/jail-path.ts'
import { parseJailPath } from './jail/jail-path.ts'
import type { Jail } from './jail/path-jail.ts'
import { look, walkAsFarAs } from './jail/path-jail.ts'
import type { UnfinishedFiles } from './jail/unfinished-files.ts'
import type { StagedFile } from './write-file.ts'
import { ANY_FILE, checkTarget, publish, stage } from './write-file.ts'

/** A file as its sender names it, possibly a path. */
export type IncomingFile = { readonly filename: string | undefined; readonly content: AsyncIterable<Uint8Array> }

export type ReceivedFile = {
  readonly path: string
  readonly size: number
  readonly sha256: string | undefined
  /** Publishes the file; it is durable when this resolves. Returns true if there was no such file. */
  readonly publish: () => Promise<boolean>
}

/** Disposing removes unpublished files. */
export type ReceivedUpload = AsyncDisposable & { readonly files: readonly ReceivedFile[] }

export type ReceiveOptions = {
  /** Called with each piece before it is stored; throws to stop. */
  readonly count: (bytes: number) => void
  readonly withHash: boolean
  readonly unfinished: UnfinishedFiles
  /** If false, files are only read, and cannot be published. */
  readonly isKept: boolean
}

/** Each is held open until it is published. */
const MAX_FILES = 100

/**
 * One file is written to `path`, or into it if that is a directory or has a trailing slash; several are written into
 * it. Throws a `Problem`, having left nothing behind.
 */
export async function receiveFiles(
  jail: Jail,
  path: JailPath,
  incoming: AsyncIterable<IncomingFile>,
  options: ReceiveOptions,
): Promise<ReceivedUpload> {
  await using stagedFiles = new AsyncDisposableStack()
  const isInto = await isDirectory(jail, path)
  const parts: { names: readonly string[]; content: Content }[] = []
  for await (const { filename = '', content } of incoming) {
    if (parts.length === MAX_FILES) throw new Problem('invalid_request', `Send at most ${MAX_FILES} files at a time.`)
    const { names } = parseJailPath(filename)
    const parent = isInto ? [...path.names, ...names.slice(0, -1)] : path.names.slice(0, -1)
    parts.push({ names, content: await receive(jail, parent, content, options, stagedFiles) })
  }
  if (parts.length === 0) throw new Problem('invalid_request', 'Send at least one file.')
  const isTarget = parts.length === 1 && !isInto
  const targetedParts = parts.map((part) => ({ ...part, target: isTarget ? path.names : insideOf(path, part.names) }))
  const targets = targetedParts.map(({ target }) => target)
  if (new Set(targets.map((names) => names.join('/'))).size < targets.length)
    throw new Problem('invalid_request', 'Two of the files have the same name.')
  // Check all of them before the first is published.
  if (options.isKept) for (const names of targets) await checkTarget(jail, names, ANY_FILE)
  const files = targetedParts.map(({ content: { size, sha256, staged: own }, target }) => ({
    path: target.join('/'),
    size,
    sha256,
    publish: async () => own !== undefined && (await publish(jail, own, target, ANY_FILE)).created,
  }))
  const ownedFiles = stagedFiles.move()
  return { files, [Symbol.asyncDispose]: () => ownedFiles.disposeAsync() }
}

async function isDirectory(jail: Jail, { names, endsInSlash }: JailPath): Promise<boolean> {
  const name = names.at(-1)
  if (name === undefined || endsInSlash) return true
  const { place, missing } = await walkAsFarAs(jail, names.slice(0, -1))
  await using parent = place
  if (missing.length > 0) return false
  await using entry = await look(jail, parent, name)
  return entry?.kind === 'directory'
}

function insideOf({ names }: JailPath, own: readonly string[]): string[] {
  if (own.length === 0)
    throw new Problem('invalid_request', 'Each file needs a filename; a single file may have a path instead.')
  return [...names, ...own]
}

type Content = { readonly size: number; readonly sha256: string | undefined; readonly staged?: StagedFile }

async function receive(
  jail: Jail,
  parent: readonly string[],
  incoming: AsyncIterable<Uint8Array>,
  { count, withHash, isKept, unfinished }: ReceiveOptions,
  all: AsyncDisposableStack,
): Promise<Content> {
  const content = countBytes(incoming, count)
  if (!isKept) return await measure(content)
  const stagedFile = all.use(await stage(jail, parent, { content, withHash, unfinished }))
  return { size: stagedFile.size, sha256: stagedFile.sha256, staged: stagedFile }
}

async function* countBytes(content: AsyncIterable<Uint8Array>, count: ReceiveOptions['count']) {
  for await (const piece of content) {
    count(piece.length)
    yield piece
  }
}

async function measure(content: AsyncIterable<Uint8Array>): Promise<Content> {
  const hash = createHash('sha256')
  let size = 0
  for await (const piece of content) {
    hash.update(piece)
    size += piece.length
  }
  return { size, sha256: hash.digest('hex') }
}
