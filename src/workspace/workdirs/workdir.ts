/** The only file that decides which directories a conversation works in. */
import { realpathSync } from 'node:fs'
import { lstat, mkdir, realpath, stat, statfs } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { makeDirectories } from '../../files/make-directories.ts'
import { FileRefusal } from '../../files/jail/file-refusal.ts'
import { codeOf } from '../../lib/error-code.ts'
import { isInside } from '../../files/jail/is-inside.ts'
import { makeDirectory } from '../../files/jail/opened-path.ts'

export type WorkdirRules = {
  /** The base of relative workdirs. */
  readonly base: string
  /** An absolute workdir must be inside one of these; empty: anywhere. */
  readonly roots: readonly string[]
  /** The server's own files: no workdir may be inside, except under a base that is inside. */
  readonly forbidden: readonly string[]
  /** Paths that no workdir may contain, because the agent could not be kept out of them. */
  readonly unholdable: readonly string[]
  /** Directories with files that the server trusts: no workdir may be inside or contain one. */
  readonly trusted?: readonly string[]
}

/**
 * Creates the directory and returns its real path. `wanted` is the client's path; without it the conversation gets a
 * new directory. Throws a `Problem` for a path outside the allowed roots or with a symbolic link in it.
 */
export async function prepareWorkdir(
  wantedPath: string | undefined,
  conversationId: string,
  rules: WorkdirRules,
): Promise<string> {
  try {
    return await makeWorkdir(wantedPath, conversationId, rules)
  } catch (error) {
    if (!(error instanceof RefusedWorkdir)) throw error
    throw new Problem('unsafe_path', `The workdir is refused: ${error.why}.`, { cause: error })
  }
}

/**
 * Returns the real paths of additional directories. A client may name what it may name as a workdir, but they must exist.
 * Throws a `Problem`.
 */
export async function checkDirectories(
  wantedPaths: readonly string[] | undefined,
  rules: WorkdirRules,
): Promise<string[] | undefined> {
  if (wantedPaths === undefined) return undefined
  const foundPaths = new Set<string>()
  for (const path of wantedPaths) foundPaths.add(await checkDirectory(path, rules))
  return [...foundPaths]
}

async function checkDirectory(wantedPath: string, rules: WorkdirRules): Promise<string> {
  try {
    const real = await allowedPath(wantedPath, rules)
    const stats = await stat(real).catch(() => undefined)
    if (!stats?.isDirectory()) throw unsafe('it is not a directory that exists')
    return real
  } catch (error) {
    if (!(error instanceof RefusedWorkdir)) throw error
    throw new Problem('unsafe_path', `The additional directory ${wantedPath} is refused: ${error.why}.`, {
      cause: error,
    })
  }
}

async function makeWorkdir(
  wantedPath: string | undefined,
  conversationId: string,
  rules: WorkdirRules,
): Promise<string> {
  const own = wantedPath === undefined && (await makeOwn(join(rules.base, conversationId)))
  if (own) return own
  await makeDirectories(rules.base, 0o700)
  const real = await allowedPath(wantedPath ?? conversationId, rules)
  try {
    // Use file descriptors from here on: an agent that works above it could put a link there after the check.
    await using place = await makeDirectory(real)
    if (place.path !== real) throw MOVED
    return place.path
  } catch (error) {
    if (error instanceof RefusedWorkdir) throw error
    if (error instanceof FileRefusal) throw MOVED
    throw new Problem(
      'invalid_request',
      `The workdir cannot be created (${codeOf(error) ?? 'error'}); use a directory that the server can write to.`,
      { cause: error },
    )
  }
}

/** Resolves a path, which need not exist. */
async function allowedPath(wantedPath: string, rules: WorkdirRules): Promise<string> {
  if (wantedPath.includes('\0')) throw unsafe('it contains a NUL character')
  const path = resolve(rules.base, wantedPath)
  const real = await realpathOfExisting(path)
  await refuseOutside(real, isAbsolute(wantedPath) ? rules.roots : [rules.base], rules)
  await refuseLinks(path, real, rules)
  return real
}

/** A new directory is empty and contains no links: there is nothing to check. */
async function makeOwn(path: string): Promise<string | undefined> {
  try {
    await mkdir(path)
  } catch {
    return undefined // the slow path finds out why and reports it
  }
  // The kernel answers from memory, because the directory is new: that costs less than to hand it to the thread pool.
  return realpathSync.native(path)
}

async function refuseOutside(real: string, roots: readonly string[], rules: WorkdirRules): Promise<void> {
  const base = await realpathOfExisting(rules.base)
  for (const forbidden of await Promise.all(rules.forbidden.map(realpathOfExisting))) {
    const isExempt = isInside(base, forbidden) && base !== forbidden && isInside(real, base)
    if (isInside(real, forbidden) && !isExempt) throw unsafe('it is inside the server’s own directory')
  }
  await refuseKernelFiles(real, base)
  // An agent that works there can change the workdirs of all conversations.
  if (real === base && rules.unholdable.length > 0)
    throw unsafe('it contains all other workdirs; use a directory inside it')
  const heldPaths = await Promise.all(rules.unholdable.map(realpathOfExisting))
  if (heldPaths.some((each) => each !== real && isInside(each, real)))
    throw unsafe('it contains the server’s own files')
  const trustedPaths = await Promise.all((rules.trusted ?? []).map(realpathOfExisting))
  if (trustedPaths.some((each) => isInside(each, real) || isInside(real, each)))
    throw unsafe('it contains the settings of the operator, or is inside of them')
  if (!roots.length) return
  const realRoots = await Promise.all(roots.map(realpathOfExisting))
  if (!realRoots.some((root) => isInside(real, root))) throw unsafe('it is outside the allowed directories')
}

/**
 * Refuses kernel files and service sockets: an agent that can write there can leave the sandbox. The operator's base
 * may be in such a place, for example on `/dev/shm`.
 */
async function refuseKernelFiles(real: string, base: string): Promise<void> {
  if (isInside(real, base)) return
  const place = ['/proc', '/sys', '/dev', '/run'].find((each) => isInside(real, each))
  if (place !== undefined) throw unsafe(`it is in ${place}, which contains no regular files`)
  if (KERNEL_FILE_SYSTEMS.has(await typeOfExisting(real))) throw unsafe('it is in a kernel file system')
}

/**
 * The type numbers in `statfs(2)`: proc, sysfs, cgroup, cgroup2, devpts, debugfs, tracefs, securityfs, bpf, configfs,
 * efivarfs, binfmt_misc, fusectl, pstore, selinuxfs.
 */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x1cd1, 0x64626720, 0x74726163, 0x73636673, 0xcafe4a11, 0x62656570,
  0xde5e81e4, 0x42494e4d, 0x65735543, 0x6165676c, 0xf97cff8c,
])

async function typeOfExisting(path: string): Promise<number> {
  try {
    return (await statfs(path)).type
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw unsafe('it cannot be resolved')
    return await typeOfExisting(dirname(path))
  }
}

/**
 * Symbolic links are followed above the directories that the operator named, never below: an agent that works there
 * could have linked to the workdir of another conversation.
 */
async function refuseLinks(path: string, real: string, { base, roots }: WorkdirRules): Promise<void> {
  const namedRoot = [base, ...roots].filter((root) => isInside(path, root)).toSorted((a, b) => b.length - a.length)[0]
  const direct = namedRoot === undefined ? path : join(await realpathOfExisting(namedRoot), relative(namedRoot, path))
  if (real !== direct) throw unsafe('its path contains a symbolic link; use the path that the link points to')
}

/** Resolves symbolic links as far as the path exists; the rest is unchanged. */
async function realpathOfExisting(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const entry = await lstat(path).catch(() => undefined)
    const isMissing = codeOf(error) === 'ENOENT'
    // Another conversation has made it meanwhile. A path through /proc can lead to a directory that has no path here.
    const real = isMissing && entry?.isDirectory() ? await realpath(path).catch(() => undefined) : undefined
    if (real !== undefined) return real
    // A link without a target would be followed as soon as its target is created.
    if (!isMissing || entry) throw unsafe('it cannot be resolved')
    return join(await realpathOfExisting(dirname(path)), relative(dirname(path), path))
  }
}

/** `why` is a clause about the directory. */
class RefusedWorkdir extends Error {
  readonly why: string

  constructor(why: string) {
    super(why)
    this.why = why
  }
}

const unsafe = (why: string) => new RefusedWorkdir(why)
const MOVED = unsafe('it was moved meanwhile')
