/** Reads the settings that are directories. */
import { existsSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { Name } from './variables.ts'

import type { ReadVariable } from './environment.ts'
import { ConfigError, createReader } from './environment.ts'

/** The directories that the server makes in the data directory for itself. */
export const OWN_DIRECTORIES = [
  'active',
  'before-format-3',
  'deletions',
  'due',
  'home-access',
  'local',
  'package-cache',
  'sessions',
  'unfinished',
]

/** Returns the data directory, which may contain a generated key that is needed for the `Config`. */
export const readDataDir = (overrides: Partial<Record<Name, string>> = {}): string => dataDirOf(createReader(overrides))

export function dataDirOf(read: ReadVariable): string {
  return resolve(wholePath('OPENHANDS_DATA_DIR', read) ?? defaultDataDir())
}

export function readWorkdirBase(read: ReadVariable, dataDir: string, sharedDir: string | undefined): string {
  const base = resolve(wholePath('OPENHANDS_WORKDIR_BASE', read) ?? join(sharedDir ?? dataDir, 'work'))
  // No workdir may be inside the server's own files, so none would be possible.
  if (base === dataDir || base === sharedDir)
    throw new ConfigError(
      'OPENHANDS_WORKDIR_BASE must be another directory than OPENHANDS_DATA_DIR and OPENHANDS_SHARED_DIR.',
    )
  // Agents could change the logs there, and a workdir would look like a mark of the conversation with its name.
  const places = [dataDir, ...(sharedDir === undefined ? [] : [sharedDir])]
  const own = places
    .flatMap((place) => OWN_DIRECTORIES.map((name) => join(place, name)))
    .find((path) => `${base}/`.startsWith(`${path}/`))
  if (own !== undefined)
    throw new ConfigError(`OPENHANDS_WORKDIR_BASE is in ${own}, where the server keeps its own files.`)
  return base
}

/** Undefined if it is not set. Only instances that share a database have what belongs to its files. */
export function readSharedDir(read: ReadVariable, dataDir: string): string | undefined {
  const path = readPath('OPENHANDS_SHARED_DIR', read)
  if (path === undefined) return undefined
  if (read('OPENHANDS_CLUSTER_LISTEN') === undefined)
    throw new ConfigError('OPENHANDS_SHARED_DIR needs OPENHANDS_CLUSTER_LISTEN: a server that is alone shares nothing.')
  const isInside = (inner: string, outer: string) => `${inner}/`.startsWith(`${outer}/`)
  if (isInside(path, dataDir) || isInside(dataDir, path))
    throw new ConfigError('OPENHANDS_SHARED_DIR and OPENHANDS_DATA_DIR cannot contain each other.')
  return path
}

/** Refuses `~`, which only a shell expands, and not `.env` and unit files: a directory with that name would be made. */
function wholePath(name: Name, read: ReadVariable): string | undefined {
  const path = read(name)
  if (path === undefined || !/^~[^/]*(\/|$)/.test(path)) return path
  throw new ConfigError(`${name}: ~ is not expanded here; write the whole path.`)
}

/** Empty if it is not set. A value without a path is refused: a list that limits something would limit nothing. */
export function readPaths(name: Name, read: ReadVariable): string[] {
  const value = read(name)
  const paths = (value ?? '').split(':').filter(Boolean)
  if (value !== undefined && paths.length === 0)
    throw new ConfigError(`${name} has no path in it; leave it out, or list paths separated by colons.`)
  const relative = paths.find((path) => !isAbsolute(path))
  if (relative) throw new ConfigError(`${name}: ${relative} is not an absolute path.`)
  return paths.map((path) => resolve(path))
}

/** Undefined if it is not set. */
export function readPath(name: Name, read: ReadVariable): string | undefined {
  const path = read(name)
  if (path !== undefined && !isAbsolute(path)) throw new ConfigError(`${name}: ${path} is not an absolute path.`)
  return path === undefined ? undefined : resolve(path)
}

export function readReadable(read: ReadVariable): string[] | undefined {
  const paths = readPaths('OPENHANDS_SANDBOX_READABLE', read)
  if (paths.includes('/'))
    throw new ConfigError('OPENHANDS_SANDBOX_READABLE cannot be /; without a value all is readable that is not hidden.')
  return paths.length > 0 ? paths : undefined
}

export function defaultDataDir(): string {
  if (process.platform === 'darwin') return join(homeDirectory(), 'Library', 'Application Support', 'agent-server')
  const { XDG_DATA_HOME: base = '' } = process.env
  return join(isAbsolute(base) ? base : join(homeDirectory(), '.local', 'share'), 'agent-server')
}

/**
 * Returns the home of the user if HOME is empty or relative: it would be a directory of the project that the process
 * was started in.
 */
export function homeDirectory(): string {
  try {
    return isAbsolute(homedir()) ? homedir() : userInfo().homedir
  } catch {
    return '/' // the user has no entry in the list of users; containers set HOME to this then
  }
}

/** The settings file of the command line. It can contain the key of a model. */
export const defaultSettingsPath = (): string => join(homeDirectory(), '.openhands', 'settings_sdk.json')

/** The path as a person writes it. */
export function withTilde(path: string): string {
  const home = homeDirectory()
  return home !== '/' && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}

/** Instructions of a person for all agents that the person starts, in the places of Claude Code and of this program. */
export function personalInstructionPaths(): string[] {
  const { XDG_CONFIG_HOME: base = '' } = process.env
  const config = isAbsolute(base) ? base : join(homeDirectory(), '.config')
  return [join(homeDirectory(), '.claude', 'CLAUDE.md'), join(config, 'agent-server', 'AGENTS.md')]
}

/** Empty while there is no such file: a directory with a secret file inside cannot be the workdir of a sandbox. */
export const settingsFileIfAny = (): string[] => [defaultSettingsPath()].filter((path) => existsSync(path))
