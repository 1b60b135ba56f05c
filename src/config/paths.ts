/** Reads the settings that are directories. */
import { existsSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { Name } from './variables.ts'

import type { Read } from './environment.ts'
import { ConfigError, createReader } from './environment.ts'

export function readWorkdirBase(value: string | undefined, dataDir: string): string {
  const base = resolve(value ?? join(dataDir, 'work'))
  // No workdir may be inside the server's own files, so none would be possible.
  if (base === dataDir)
    throw new ConfigError('OPENHANDS_WORKDIR_BASE must be another directory than OPENHANDS_DATA_DIR.')
  return base
}

export function readPaths(name: Name, read: Read): string[] {
  const paths = (read(name) ?? '').split(':').filter(Boolean)
  const relative = paths.find((path) => !isAbsolute(path))
  if (relative) throw new ConfigError(`${name}: ${relative} is not an absolute path.`)
  return paths.map((path) => resolve(path))
}

/** Undefined if it is not set. */
export function readPath(name: Name, read: Read): string | undefined {
  const path = read(name)
  if (path !== undefined && !isAbsolute(path)) throw new ConfigError(`${name}: ${path} is not an absolute path.`)
  return path === undefined ? undefined : resolve(path)
}

export function readReadable(read: Read): string[] | undefined {
  const paths = readPaths('OPENHANDS_SANDBOX_READABLE', read)
  if (paths.includes('/'))
    throw new ConfigError('OPENHANDS_SANDBOX_READABLE cannot be /; without a value all is readable that is not hidden.')
  return paths.length > 0 ? paths : undefined
}

/** Returns the data directory, which may contain a generated key that is needed for the `Config`. */
export function readDataDir(overrides: Partial<Record<Name, string>> = {}): string {
  return resolve(createReader(overrides)('OPENHANDS_DATA_DIR') ?? defaultDataDir())
}

export function defaultDataDir(): string {
  if (process.platform === 'darwin') return join(homeDirectory(), 'Library', 'Application Support', 'agent-server')
  const { XDG_DATA_HOME: base = '' } = process.env
  return join(isAbsolute(base) ? base : join(homeDirectory(), '.local', 'share'), 'agent-server')
}

/** That of the user if HOME is empty or relative: it would be a directory of the project that the process was started in. */
export const homeDirectory = (): string => (isAbsolute(homedir()) ? homedir() : userInfo().homedir)

/** The settings file of the command line. It can contain the key of a model. */
export const defaultSettingsPath = (): string => join(homeDirectory(), '.openhands', 'settings_sdk.json')

/** Empty while there is no such file: a directory with a secret file inside cannot be the workdir of a sandbox. */
export const settingsFileIfAny = (): string[] => [defaultSettingsPath()].filter((path) => existsSync(path))
