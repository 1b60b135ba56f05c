/** Builds the files of a conversation, as clients reach them, and its snapshots. */
import type { Redactor } from '../security/redaction/redactor.ts'
import { ConversationFiles } from '../workspace/files/files.ts'
import type { FilesDeps } from '../workspace/files/files.ts'
import { WorkspaceSnapshots } from '../workspace/snapshots/snapshots.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { SharedParts } from './subagents/build-subagent.ts'

type Parts = Pick<FilesDeps, 'log' | 'workdir'> &
  Pick<SharedParts, 'hooks' | 'limits'> & {
    readonly directory: string
    readonly additionalDirectories: () => readonly string[]
    readonly redact: Redactor['redact']
  }

export function buildFiles({ workspace }: ConversationDeps, parts: Parts): ConversationFiles {
  const { directory, log, limits, workdir, additionalDirectories, redact, hooks } = parts
  const rules = () => workspace.fileRules({ stateDirectory: directory, workdir, additionalDirectories })
  return new ConversationFiles({
    ...workspace.files,
    log,
    stateDirectory: directory,
    workdir,
    rules,
    quota: limits.quota,
    redact,
    onFileChanged: (path, how) => hooks.current?.watching.fileChanged(`${workdir()}/${path}`, how),
    createSnapshots: (headCommit) =>
      new WorkspaceSnapshots({
        log,
        directory,
        workdir,
        additionalDirectories,
        rules,
        unfinished: workspace.files.unfinished,
        redact,
        headCommit,
        limits: workspace.snapshotLimits,
      }),
  })
}
