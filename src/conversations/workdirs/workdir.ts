/** The only file that decides which directory a conversation works in. */
import { lstat, mkdir, realpath, statfs } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { makeDirectories } from '../../lib/make-directories.ts'
import { FileRefusal } from '../../files/file-refusal.ts'
import { codeOf } from '../../lib/error-code.ts'
import { makeDirectory } from '../../files/opened-path.ts'

export type WorkdirRules = {
  /** Relative workdirs lie under it. */
  readonly base: string
  /** An absolute workdir must lie in one of these; empty: anywhere. */
  readonly roots: readonly string[]
  /** Where the server's own files are: no workdir lies in there, but for those under a base that does. */
  readonly forbidden: string
  /** What no workdir may have in it, because there it could not be kept from the agent. */
  readonly unholdable: readonly string[]
}

/**
 * Makes the directory and answers its real path. `wanted` is what the client asked for; without it the conversation gets
 * a directory of its own. Throws a `Problem` for a path that leaves where it may be, or that has a symbolic
 * link in it.
 */
export async function prepareWorkdir(
  wanted: string | undefined,
  conversationId: string,
  rules: WorkdirRules,
): Promise<string> {
  const own = wanted === undefined && (await makeOwn(join(rules.base, conversationId)))
  if (own) return own
  await makeDirectories(rules.base, 0o700)
  if (wanted?.includes('\0')) throw unsafe('it holds a NUL character')
  const path = resolve(rules.base, wanted ?? conversationId)
  const allowed = wanted !== undefined && isAbsolute(wanted) ? rules.roots : [rules.base]
  const real = await realpathOfExisting(path)
  await refuseOutside(real, allowed, rules)
  await refuseLinks(path, real, rules)
  try {
    // By descriptors from here on: an agent that works above it could put a link there now that it has been checked.
    await using place = await makeDirectory(real)
    if (place.path !== real) throw MOVED
    return place.path
  } catch (error) {
    if (error instanceof Problem) throw error
    if (error instanceof FileRefusal) throw MOVED
    throw new Problem(
      'invalid_request',
      `The workdir cannot be made (${codeOf(error) ?? 'error'}); give a directory the server may write to.`,
      { cause: error },
    )
  }
}

/** A directory that is new has nothing in it and leads nowhere: there is nothing to check. */
async function makeOwn(path: string): Promise<string | undefined> {
  try {
    await mkdir(path)
  } catch {
    return undefined // the long way finds out why, and says so
  }
  return await realpath(path)
}

async function refuseOutside(real: string, roots: readonly string[], rules: WorkdirRules): Promise<void> {
  const [base, forbidden] = await Promise.all([realpathOfExisting(rules.base), realpathOfExisting(rules.forbidden)])
  const isExempt = isInside(base, forbidden) && base !== forbidden && isInside(real, base)
  if (isInside(real, forbidden) && !isExempt) throw unsafe('it lies among the server’s own files')
  await refuseKernelFiles(real, base)
  // An agent that works there can change the workdirs of all conversations.
  if (real === base && rules.unholdable.length > 0) throw unsafe('all other workdirs lie in it; name a directory in it')
  const held = await Promise.all(rules.unholdable.map(realpathOfExisting))
  if (held.some((each) => each !== real && isInside(each, real))) throw unsafe('the server’s own files lie in it')
  if (!roots.length) return
  const realRoots = await Promise.all(roots.map(realpathOfExisting))
  if (!realRoots.some((root) => isInside(real, root))) throw unsafe('it lies outside the directories that are allowed')
}

/**
 * Files of the kernel and sockets of services: an agent that can write there can leave the sandbox. The operator's base may
 * be in such a place, for example on `/dev/shm`.
 */
async function refuseKernelFiles(real: string, base: string): Promise<void> {
  if (isInside(real, base)) return
  const place = ['/proc', '/sys', '/dev', '/run'].find((each) => isInside(real, each))
  if (place !== undefined) throw unsafe(`it lies in ${place}, where there are no files to work with`)
  if (KERNEL_FILE_SYSTEMS.has(await typeOfExisting(real))) throw unsafe('it lies in a file system of the kernel')
}

/** By their numbers in `statfs(2)`: proc, sysfs, cgroup, cgroup2, devpts, debugfs, tracefs, securityfs, bpf, configfs, efivarfs, binfmt_misc, fusectl, pstore, selinuxfs. */
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
 * Links are followed above the directories that the operator named, and nowhere below: an agent that works there could have
 * made one to the workdir of another conversation.
 */
async function refuseLinks(path: string, real: string, { base, roots }: WorkdirRules): Promise<void> {
  const named = [base, ...roots].filter((root) => isInside(path, root)).toSorted((a, b) => b.length - a.length)[0]
  const direct = named === undefined ? path : join(await realpathOfExisting(named), relative(named, path))
  if (real !== direct) throw unsafe('there is a symbolic link in its path; give the path that the link leads to')
}

/** Symbolic links resolved as far as the path exists; the rest is as given. */
async function realpathOfExisting(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    // A link that leads nowhere would be followed once its target is made.
    if (!missing || (await lstat(path).catch(() => undefined))) throw unsafe('it cannot be resolved')
    return join(await realpathOfExisting(dirname(path)), relative(dirname(path), path))
  }
}

const isInside = (path: string, root: string) =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

const unsafe = (why: string) => new Problem('unsafe_path', `The workdir is refused: ${why}.`)
const MOVED = unsafe('it has been moved meanwhile')
