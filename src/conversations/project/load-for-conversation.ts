/** Loads the project settings that a request for a new conversation asks for. */
import { realpath } from 'node:fs/promises'
import type { CreateConversation } from '../../contract/conversation.ts'
import { modeNamed } from '../../contract/values/permission.ts'
import type { LoadedProject } from '../../project/load-project.ts'
import { loadProject } from '../../project/load-project.ts'
import { canonicalRule } from '../config/permission-rules.ts'
import { rulesIn } from '../config/settings.ts'
import type { FileRules } from '../../files/jail/file-gate.ts'

export type ProjectPlace = {
  /** The path without links. */
  readonly workdir: string
  /** The server's own directory for the conversation. */
  readonly stateDirectory: string
}

type Places = {
  /** The operator's directory of settings. */
  readonly userSettings: string | undefined
  readonly fileRules: (place: { stateDirectory: string; workdir: () => string }) => FileRules
  readonly homesOf: (directory: string) => readonly string[]
}

/**
 * Returns settings that are not redacted. Undefined if the request asks for none. Throws a `Problem` for a settings
 * file that cannot be read.
 */
export async function loadForConversation(
  { workspace }: { readonly workspace: Places },
  request: CreateConversation,
  { workdir, stateDirectory }: ProjectPlace,
): Promise<LoadedProject | undefined> {
  const { setting_sources: sources = [], trust_project: isTrusted = false, permission_mode: mode } = request
  if (sources.length === 0) return undefined
  return await loadProject({
    sources,
    isTrusted,
    workdir,
    userDirectory: await userDirectoryOf(workspace.userSettings),
    forbidden: workspace.fileRules({ stateDirectory, workdir: () => workdir }).forbidden,
    homes: workspace.homesOf(stateDirectory),
    rules: rulesIn(request, (text) => text),
    mode: mode && modeNamed(mode),
    canonicalRule,
  })
}

/** Undefined if it is not configured or does not exist. */
async function userDirectoryOf(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : await realpath(path).catch(() => undefined)
}
