/**
 * The file operations of the editor: look, list, make, replace, remove, and nothing else of the file system. The only
 * file that decides which paths the editor may touch.
 *
 * It works on the host, as the agent's shell does, and so it has no root that it must stay in. But it runs inside the
 * server's own process, which must not be talked into showing its own files. Names can be swapped for links at any
 * moment, so nothing is decided by a name: a path is first opened without any effect (`O_PATH`), the kernel then tells
 * where that really is, and all that follows goes through the open descriptor. Linux only.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import type { BigIntStats, Dirent } from 'node:fs'
import { access, link, lstat, mkdir, open, opendir, readlink, rename, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

export type EditorFilesOptions = {
  /** Files and directories that are neither shown nor changed, with all they hold. */
  readonly forbidden: readonly string[]
  /** Directories that are open again, although they lie in a forbidden one. Of those that hold a path the innermost decides. */
  readonly permitted?: readonly string[]
  /** As `permitted`, but nothing in there is changed. */
  readonly readable?: readonly string[]
}

/** What is at a path. `path` is the real one: absolute, and free of links. */
export type Found =
  | FoundFile
  /** A file of more bytes than were asked for; it is not read. */
  | { readonly kind: 'large'; readonly path: string; readonly size: number }
  | { readonly kind: 'directory'; readonly path: string }
  /** Neither file nor directory; it is not opened. `what` says what, as in "a named pipe". */
  | { readonly kind: 'special'; readonly path: string; readonly what: string }
  | Missing

export type FoundFile = {
  readonly kind: 'file'
  readonly path: string
  readonly bytes: Buffer
  readonly version: FileVersion
}

/** Where a file can be made, together with the directories that are missing before it. */
export type Missing = { readonly kind: 'missing'; readonly path: string }

/** What tells that a file is still the one that was read, and unchanged: the time that nobody can set back. */
type FileVersion = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'ctimeNs'>

export type Listing = {
  /** Paths relative to the directory, those of directories with a `/` at the end, in order. */
  readonly entries: readonly string[]
  /** Hidden ones of the directory itself. */
  readonly hidden: number
  /** Whether there are more than could be listed. */
  readonly isCut: boolean
}

/**
 * Every operation throws a `FileRefusal` for what the file system, or a rule, does not allow, having changed nothing.
 * A change is atomic: a reader sees the file before or the file after, also when the process is killed in between.
 */
export interface EditorFiles {
  /** Reads all of a file of at most `maxBytes`. Links are followed. */
  look(path: string, maxBytes: number): Promise<Found>
  list(directory: string): Promise<Listing>
  /** Refuses when something is there by now. */
  create(missing: Missing, bytes: Buffer): Promise<void>
  /** Keeps mode and, where it may, owner. Refuses when the file is not the one that was found any more. */
  replace(file: FoundFile, bytes: Buffer): Promise<void>
  remove(file: FoundFile): Promise<void>
}

/** What cannot be done, and what to do instead, in words for the model. */
export class FileRefusal extends Error {
  override readonly name = 'FileRefusal'
  /** By a rule of the server, not by the file system. */
  readonly isForbidden: boolean

  constructor(message: string, { isForbidden = false, cause }: { isForbidden?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isForbidden = isForbidden
  }
}

/** How many entries a listing has at most. */
export const MAX_LISTED = 1000

/** Stands for a place without opening what is there; Linux's number, which Node has no name for. */
const O_PATH = 0o10000000

export function createEditorFiles(options: EditorFilesOptions): EditorFiles {
  const gate = createGate(options)

  return {
    look: (path, maxBytes) =>
      told(path, async () => {
        await using place = await openPlace(path, gate)
        if ('missing' in place) return { kind: 'missing', path: place.missing }
        const stats = await place.handle.stat({ bigint: true })
        if (stats.isDirectory()) return { kind: 'directory', path: place.path }
        if (!stats.isFile()) return { kind: 'special', path: place.path, what: nameKind(stats) }
        return await readFile(place, maxBytes)
      }),

    list: (directory) =>
      told(directory, async () => {
        await using place = await openDirectory(directory)
        await gate.check(place.path, 'read')
        return await listTwoLevels(place, gate)
      }),

    create: (missing, bytes) =>
      told(missing.path, async () => {
        await gate.check(missing.path, 'write')
        await using directory = await makeDirectory(dirname(missing.path))
        const target = within(directory, basename(missing.path))
        await withTemporary(directory, bytes, undefined, (temporary) => publishNew(temporary, target))
      }),

    replace: (file, bytes) =>
      told(file.path, async () => {
        await gate.check(file.path, 'write')
        await using directory = await openUnmoved(dirname(file.path))
        const target = within(directory, basename(file.path))
        const { mode, uid, gid } = await refuseChanged(target, file)
        // The directory's permission would do; but who takes the right to write from a file means the file.
        await access(target, constants.W_OK)
        await withTemporary(directory, bytes, { mode, uid, gid }, async (temporary) => {
          await refuseChanged(target, file)
          await rename(temporary, target)
        })
      }),

    remove: (file) =>
      told(file.path, async () => {
        await gate.check(file.path, 'write')
        await using directory = await openUnmoved(dirname(file.path))
        const target = within(directory, basename(file.path))
        await refuseChanged(target, file)
        await unlink(target)
      }),
  }
}

/** An open place, and where the kernel says it is. */
type Place = AsyncDisposable & { readonly handle: FileHandle; readonly path: string }

async function openPlace(path: string, gate: Gate): Promise<Place | (AsyncDisposable & { readonly missing: string })> {
  try {
    const place = await openAt(path)
    await gate.check(place.path, 'read').catch(async (refusal: unknown) => {
      await place.handle.close()
      throw refusal
    })
    return place
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    const missing = await findMissing(path)
    await gate.check(missing, 'read')
    return { missing, [Symbol.asyncDispose]: async () => {} }
  }
}

async function openAt(path: string, flags = 0): Promise<Place> {
  const handle = await open(path, O_PATH | flags)
  try {
    const real = await readlink(`/proc/self/fd/${handle.fd}`)
    return { handle, path: real, [Symbol.asyncDispose]: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

const openDirectory = (path: string) => openAt(path, constants.O_DIRECTORY)

/** A name in an open directory, whatever the directory's own name has come to mean. */
const within = ({ handle }: Place, name: string) => `/proc/self/fd/${handle.fd}/${name}`

/** The real path of what does not exist: its nearest directory that does, and the rest as given. */
async function findMissing(path: string): Promise<string> {
  const target = await readlink(path).catch(() => undefined)
  if (target !== undefined) {
    throw new FileRefusal(
      `${path} is a symbolic link to ${target}, which does not exist; give the path of the file itself.`,
    )
  }
  const parent = dirname(path)
  try {
    await using directory = await openDirectory(parent)
    return join(directory.path, basename(path))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    return join(await findMissing(parent), basename(path))
  }
}

/** Opens the directory at a path that had no links when it was found, making what is missing of it. */
async function makeDirectory(path: string): Promise<Place> {
  try {
    return await openUnmoved(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
  await using parent = await makeDirectory(dirname(path))
  const child = within(parent, basename(path))
  await mkdir(child).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
  return await openAt(child, constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

/** Refuses when the directory is not where it was when something in it was found: a name on the way now leads elsewhere. */
async function openUnmoved(path: string): Promise<Place> {
  const place = await openDirectory(path)
  if (place.path === path) return place
  await place.handle.close()
  throw new FileRefusal(`${path} has been moved meanwhile; view it and try again.`)
}

async function readFile({ handle, path }: Place, maxBytes: number): Promise<Found> {
  // Through the descriptor: what is opened now is what was looked at.
  await using reading = await open(`/proc/self/fd/${handle.fd}`, constants.O_RDONLY)
  const version = await reading.stat({ bigint: true })
  if (version.size > maxBytes) return { kind: 'large', path, size: Number(version.size) }
  return { kind: 'file', path, bytes: await reading.readFile(), version }
}

async function refuseChanged(target: string, { path, version }: FoundFile): Promise<BigIntStats> {
  const now = await lstat(target, { bigint: true })
  const isSame =
    now.dev === version.dev && now.ino === version.ino && now.size === version.size && now.ctimeNs === version.ctimeNs
  if (!isSame)
    throw new FileRefusal(
      `${path} was changed by something else in this very moment; nothing was written. View it and try again.`,
    )
  return now
}

type Ownership = { readonly mode: bigint; readonly uid: bigint; readonly gid: bigint }

/** Has the bytes on disk under a name of their own, and hands it to `publish`; whatever happens, the name is gone afterwards. */
async function withTemporary(
  directory: Place,
  bytes: Buffer,
  like: Ownership | undefined,
  publish: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = within(directory, `.edit-${randomBytes(8).toString('hex')}.tmp`)
  try {
    await using file = await open(temporary, 'wx', like ? 0o600 : 0o666)
    await file.writeFile(bytes)
    if (like) await makeAlike(file, like)
    // Before it takes the name of the old file, or a power cut could leave an empty one in its place.
    await file.sync()
    await publish(temporary)
  } finally {
    await unlink(temporary).catch(() => {}) // after a rename there is none
  }
}

/** By a link and not a rename, which would replace what has come to be there meanwhile. */
async function publishNew(temporary: string, target: string): Promise<void> {
  try {
    await link(temporary, target)
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error
    const isFree = await lstat(target).then(
      () => false,
      (missing: unknown) => codeOf(missing) === 'ENOENT',
    )
    if (!isFree) throw error
    await rename(temporary, target)
  }
}

/** What file systems without hard links answer, FAT and shared folders of virtual machines among them. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function makeAlike(file: FileHandle, { mode, uid, gid }: Ownership): Promise<void> {
  const own = await file.stat({ bigint: true })
  // Only root may give files away; for others the new file stays theirs.
  if (own.uid !== uid || own.gid !== gid) await file.chown(Number(uid), Number(gid)).catch(() => {})
  // Last: a change of owner takes the set-user-id bit away.
  await file.chmod(Number(mode & 0o7777n))
}

async function listTwoLevels(directory: Place, gate: Gate): Promise<Listing> {
  const top = await readVisible(directory, MAX_LISTED)
  const entries: string[] = []
  // The first level is listed before all: one large directory must not push the others out.
  let room = MAX_LISTED - top.visible.length
  let isCut = top.isCut
  for (const entry of top.visible) {
    entries.push(labelOf(entry))
    if (!entry.isDirectory()) continue
    const inner = await readInner(directory, entry.name, room, gate)
    entries.push(...inner.visible.map((child) => `${entry.name}/${labelOf(child)}`))
    room -= inner.visible.length
    isCut ||= inner.isCut
  }
  return { entries, hidden: top.hidden, isCut }
}

type Names = { readonly visible: readonly Dirent[]; readonly hidden: number; readonly isCut: boolean }

/** What may not be looked into is listed by its name alone. */
async function readInner(directory: Place, name: string, limit: number, gate: Gate): Promise<Names> {
  try {
    await using inner = await openAt(within(directory, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    await gate.check(inner.path, 'read')
    return await readVisible(inner, limit)
  } catch {
    return { visible: [], hidden: 0, isCut: false }
  }
}

async function readVisible(directory: Place, limit: number): Promise<Names> {
  const visible: Dirent[] = []
  let hidden = 0
  let isCut = false
  for await (const entry of await opendir(within(directory, '.'))) {
    if (entry.name.startsWith('.')) hidden++
    else if (visible.length < limit) visible.push(entry)
    else isCut = true
    if (isCut) break
  }
  return { visible: visible.sort((a, b) => (a.name < b.name ? -1 : 1)), hidden, isCut }
}

const labelOf = (entry: Dirent) => (entry.isDirectory() ? `${entry.name}/` : entry.name)

type Gate = { check(realPath: string, access: 'read' | 'write'): Promise<void> }

function createGate({ forbidden, permitted = [], readable = [] }: EditorFilesOptions): Gate {
  const rules = [
    ...permitted.map((root) => ({ root, read: true, write: true })),
    ...readable.map((root) => ({ root, read: true, write: false })),
    // Last, so that it wins over another rule for the same root.
    ...forbidden.map((root) => ({ root, read: false, write: false })),
  ]
  return {
    async check(realPath, access) {
      // The roots' real paths each time: they too can be made, or come to be links, at any moment.
      const real = await Promise.all(rules.map(async (rule) => ({ ...rule, root: await realRoot(rule.root) })))
      const holding = real.filter(({ root }) => isInside(realPath, root))
      const deciding = holding.reduce<(typeof real)[number] | undefined>(
        (inner, rule) => (inner && inner.root.length > rule.root.length ? inner : rule),
        undefined,
      )
      if (!deciding || deciding[access]) return
      const why = deciding.read
        ? 'can be viewed, but not changed'
        : 'is not open to this tool, as it belongs to the server'
      throw new FileRefusal(`${realPath} ${why}; work in your own directory.`, { isForbidden: true })
    },
  }
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

function nameKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'a special file'
}

/** Turns what the system says into what the model can act on. */
async function told<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof FileRefusal) throw error
    const code = codeOf(error)
    if (code === undefined) throw error
    throw new FileRefusal(SENTENCES[code]?.(path) ?? `${path}: the file system refused (${code}).`, { cause: error })
  }
}

const SENTENCES: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `The path ${path} does not exist. Please provide a valid path.`,
  EEXIST: (path) => `File already exists at: ${path}. Cannot overwrite files using command \`create\`.`,
  ENOTDIR: (path) => `A part of ${path} is a file and not a directory. Please provide a valid path.`,
  EACCES: (path) => `Permission denied: ${path}. You may not read or write it as this user.`,
  EPERM: (path) => `Permission denied: ${path}. You may not change it as this user.`,
  EROFS: (path) => `${path} is on a read-only file system.`,
  ELOOP: (path) => `${path} leads through too many symbolic links.`,
  ENAMETOOLONG: (path) => `The path ${path.slice(0, 100)}… is too long.`,
  ENOSPC: (path) => `There is no space left for ${path}; nothing was changed.`,
  EDQUOT: (path) => `There is no space left for ${path}; nothing was changed.`,
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined
