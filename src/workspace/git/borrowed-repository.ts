/**
 * A git directory of the server that borrows the objects and references of the repository in a workdir. The only file that
 * decides which settings of a repository count: a few that say how its files are stored, with values of a known form. All
 * others are left out, because git would execute the programs that some of them name.
 */
import { copyFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { Problem } from '../../contract/problem.ts'
import type { OpenedPath } from '../../files/jail/opened-path.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { enter, look, openToRead } from '../../files/jail/path-jail.ts'
import { GitFailure } from './run-git.ts'

/** Runs git with the settings of the borrowed repository. */
type Run = (args: readonly string[]) => Promise<Buffer>

const MAX_HEAD_BYTES = 4096
/** The index of a repository with a million files is half as large. */
const MAX_INDEX_BYTES = 256n * 1024n ** 2n

/** Replaces `gitDir`. Throws a `Problem` unless the workdir is the top of a repository with all of its parts in it. */
export async function borrowRepository(jail: Jail, gitDir: string, run: Run): Promise<void> {
  const at = join(jail.root.path, '.git')
  const { head, optional } = await checkRepository(jail)
  await rm(gitDir, { recursive: true, force: true })
  await makeDirectories(join(gitDir, 'info'), 0o700)
  const link = (name: string) => symlink(join(at, name), join(gitDir, name))
  for (const name of ['objects', 'refs', ...optional]) await link(name)
  await writeFile(join(gitDir, 'HEAD'), head, { mode: 0o600 })
  await copyIndex(jail, join(gitDir, 'index'))
  await writeSettings(gitDir, new Map())
  // Listing the settings of a file executes nothing, and neither do included files, which are left out.
  const listedSettings = await run(['config', '--file', join(at, 'config'), '--no-includes', '--list', '-z'])
  await writeSettings(gitDir, settingsIn(listedSettings.toString()))
}

type FoundRepository = { readonly head: Buffer; readonly optional: readonly string[] }

async function checkRepository(jail: Jail): Promise<FoundRepository> {
  await using entry = await look(jail, jail.root, '.git')
  if (!entry) throw noRepository('The working directory is not the top of a git repository. Run git init there.')
  if (entry.kind !== 'directory') throw elsewhere('.git is a file or a link')
  await using git = await enterOrThrow(jail, jail.root, '.git')
  await using objects = await enterOrThrow(jail, git, 'objects')
  await using _refs = await enterOrThrow(jail, git, 'refs')
  await requireKind(jail, git, 'config', 'file')
  await requireKind(jail, objects, 'pack', 'directory')
  {
    await using info = (await kindOf(jail, objects, 'info')) && (await enterOrThrow(jail, objects, 'info'))
    if (info && (await kindOf(jail, info, 'alternates')))
      throw elsewhere('objects/info/alternates names other directories')
  }
  if (await kindOf(jail, git, 'commondir')) throw elsewhere('commondir names another directory')
  const optional: string[] = []
  for (const name of ['packed-refs', 'shallow']) if (await requireKind(jail, git, name, 'file')) optional.push(name)
  if (await requireKind(jail, git, 'info', 'directory')) {
    await using info = await enterOrThrow(jail, git, 'info')
    for (const name of ['exclude', 'attributes'])
      if (await requireKind(jail, info, name, 'file')) optional.push(`info/${name}`)
  }
  return { head: await readHead(jail, git), optional }
}

async function enterOrThrow(jail: Jail, place: OpenedPath, name: string): Promise<OpenedPath> {
  if (!(await requireKind(jail, place, name, 'directory'))) throw noRepository(`The repository has no ${name}.`)
  const foundPath = await enter(jail, place, name)
  if (!foundPath) throw noRepository(`The repository has no ${name}.`)
  return foundPath
}

async function kindOf(jail: Jail, place: OpenedPath, name: string) {
  await using entry = await look(jail, place, name)
  return entry?.kind
}

/** Returns whether it exists. */
async function requireKind(jail: Jail, place: OpenedPath, name: string, kind: 'file' | 'directory'): Promise<boolean> {
  const foundKind = await kindOf(jail, place, name)
  if (foundKind !== undefined && foundKind !== kind) throw elsewhere(`${name} is not a ${kind}`)
  return foundKind !== undefined
}

/** Git refuses a HEAD that is a link to anything but a reference. */
async function readHead(jail: Jail, git: OpenedPath): Promise<Buffer> {
  await using entry = await look(jail, git, 'HEAD')
  if (entry?.kind !== 'file') throw noRepository('The repository has no HEAD.')
  await using file = await openToRead(jail, entry)
  const { buffer, bytesRead } = await jail.io(() => file.read(Buffer.alloc(MAX_HEAD_BYTES), 0, MAX_HEAD_BYTES, 0))
  return buffer.subarray(0, bytesRead)
}

/**
 * A copy, because git writes to the index after it has compared files. Its time is rounded down: git compares the content of
 * a file that is not older than the index.
 */
async function copyIndex(jail: Jail, to: string): Promise<void> {
  await using git = await enterOrThrow(jail, jail.root, '.git')
  await using entry = await look(jail, git, 'index')
  if (!entry) return
  if (entry.stats.size > MAX_INDEX_BYTES) throw new GitFailure('The index is larger than 256 MiB.')
  await using file = await openToRead(jail, entry)
  await jail.io(() => copyFile(`/proc/self/fd/${file.fd}`, to))
  const seconds = Number(entry.stats.mtimeMs / 1000n)
  await utimes(to, seconds, seconds)
}

const noRepository = (message: string) => new Problem('not_a_repository', message)

const elsewhere = (why: string) =>
  new Problem(
    'not_a_repository',
    `The repository has parts outside of the working directory, and is not read: ${why}. Use git with a command of the conversation.`,
  )

const BOOLEAN = /^(?:true|false|yes|no|on|off|1|0)$/i

/** What counts of the repository's own settings, by the form of its values. */
const KEPT: Readonly<Record<string, RegExp>> = {
  'core.repositoryformatversion': /^[01]$/,
  'core.filemode': BOOLEAN,
  'core.symlinks': BOOLEAN,
  'core.ignorecase': BOOLEAN,
  'core.precomposeunicode': BOOLEAN,
  'core.autocrlf': /^(?:true|false|input)$/i,
  'core.eol': /^(?:lf|crlf|native)$/i,
  'extensions.objectformat': /^(?:sha1|sha256)$/i,
}

const FIXED: Readonly<Record<string, string>> = {
  'core.bare': 'false',
  'core.fsmonitor': 'false',
  'core.untrackedcache': 'keep',
  'core.hookspath': '/dev/null',
  'core.attributesfile': '/dev/null',
  'core.excludesfile': '/dev/null',
  'core.safecrlf': 'false',
  'core.pager': 'cat',
  'diff.renames': 'true',
  'status.renames': 'true',
  'submodule.recurse': 'false',
  'protocol.allow': 'never',
  'gc.auto': '0',
}

/** `listed`: entries that end with NUL, each a key, a line break and the value; without the last two for `true`. */
function settingsIn(listedSettings: string): Map<string, string> {
  const keptSettings = new Map<string, string>()
  for (const entry of listedSettings.split('\0')) {
    const end = entry.indexOf('\n')
    const [key, value] = end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)]
    if (KEPT[key]?.test(value)) keptSettings.set(key, value)
    else if (key === 'extensions.refstorage' && value !== 'files')
      throw noRepository(`References that are stored as ${JSON.stringify(value.slice(0, 40))} are not supported.`)
  }
  return keptSettings
}

async function writeSettings(gitDir: string, keptSettings: ReadonlyMap<string, string>): Promise<void> {
  const settings = Object.entries({ ...Object.fromEntries(keptSettings), ...FIXED })
  const lines = settings.map(([key, value]) => {
    const [section = '', name = ''] = key.split('.')
    return `[${section}]\n\t${name} = ${value}\n`
  })
  await writeFile(join(gitDir, 'config'), lines.join(''), { mode: 0o600 })
}
