/** Decides where each conversation stores its files, and which files its editor and the file routes may access. */
import { defaultSettingsPath, homeDirectory } from '../config/paths.ts'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { FileRules } from '../files/jail/file-gate.ts'
import type { HostEnvironment } from '../lib/start-process.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import type { HomeViews } from './home-views.ts'
import { hiddenFromShells, readableByShells } from '../sandbox/mounts.ts'

export const privateOf = (conversationDirectory: string): string => join(conversationDirectory, 'private')
export const shellsOf = (conversationDirectory: string): string => join(conversationDirectory, 'shells')
export const outputsOf = (conversationDirectory: string): string => join(conversationDirectory, 'outputs')

type Places = {
  readonly stateDirectory: string
  readonly workdir: () => string
  readonly additionalDirectories?: () => readonly string[]
}

/**
 * The editor and the file routes run in this process, so they must not access `/proc`, where `self` is the server and
 * `environ` has its secrets, nor the server's files, except the workdirs among them and the complete outputs that
 * results name.
 * With a sandbox they access only what the shells can: otherwise they could write files where shells cannot, and these
 * files would be executed.
 * The settings file of the command line grants rights to the next start, so nobody creates it here either.
 */
export function fileRules(
  config: Config,
  { isolation }: ShellLauncher,
  conversation: Places,
  homes?: HomeViews,
): FileRules {
  const { dataDir, sharedDir, workdirBase, hiddenFiles, sandboxReadable } = config
  const keyFiles = [...config.secretFiles, defaultSettingsPath()]
  const outputs = outputsOf(conversation.stateDirectory)
  if (isolation === 'none') {
    return {
      forbidden: [dataDir, ...(sharedDir === undefined ? [] : [sharedDir]), '/proc', ...keyFiles, ...hiddenFiles()],
      permitted: [workdirBase],
      readable: [outputs],
    }
  }
  const own = [conversation.workdir(), ...(conversation.additionalDirectories?.() ?? [])]
  const home = homeDirectory()
  const hiddenPaths = hiddenFromShells({ dataDir, sharedDir, workdirBase, keyFiles, otherKeyFiles: hiddenFiles, home })
  return {
    forbidden: [...hiddenPaths.filter((path) => !own.includes(path)), ...(sandboxReadable ? ['/'] : [])],
    own,
    permitted: [privateOf(conversation.stateDirectory)],
    readable: [...(sandboxReadable ? readableByShells(sandboxReadable) : ['/']), outputs],
    shown: homes?.shownTo(conversation),
  }
}

/** A shell in a sandbox has its own home directory; rules may also mean that of the server's user. */
export function homesOf(
  { isolation }: Pick<ShellLauncher, 'isolation'>,
  env: HostEnvironment,
  conversationDirectory: string,
): string[] {
  const own =
    isolation === 'none' ? (env.variables['HOME'] ?? homeDirectory()) : join(privateOf(conversationDirectory), 'home')
  return [...new Set([own, homeDirectory()])]
}
