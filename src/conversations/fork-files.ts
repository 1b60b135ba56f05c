/** The files of a fork: gives it the snapshots of its original, and its copied workdir the files of its moment. */
import { realpath } from 'node:fs/promises'
import type { ForkedFiles } from '../contract/events/forked-files.ts'
import { Problem } from '../contract/problem.ts'
import { WorkspaceSnapshots } from '../workspace/snapshots/snapshots.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ForkSource } from './fork-source.ts'

export type ForkFilesOptions = {
  /** The server's own directory for the fork. */
  readonly directory: string
  /** A copy of the workdir as it is now, which nobody else uses yet; undefined if the fork shares the directory. */
  readonly copied: string | undefined
  /** The last event that is copied. */
  readonly throughSeq: number
  /** Ends the restoring, and throws its reason. */
  readonly signal: AbortSignal
}

type MadeFork = { readonly files: ForkedFiles; readonly warnings: readonly string[] }

/** An event names no more paths than this. */
const MAX_LEFT_OUT = 100

/** Call it before the log of the fork exists. Without a snapshot of the moment, the copied files stay as they are. */
export async function makeForkFiles(
  deps: ConversationDeps,
  source: ForkSource,
  options: ForkFilesOptions,
): Promise<MadeFork> {
  const { copied, throughSeq } = options
  const isEarlier = throughSeq < source.log.head
  const { file_checkpointing: isOn = false } = source.state.settings
  const fault = isOn ? await copySnapshots(source, options) : undefined
  const warnings = fault === undefined ? [] : [`its snapshots were not copied: ${source.redact(fault)}`]
  const reportOf = (files: ForkedFiles) => ({ files, warnings })
  if (copied === undefined) return reportOf({ from: 'shared' })
  if (!isEarlier) return reportOf({ from: 'now' })
  if (!isOn) return reportOf({ from: 'now', reason: OFF })
  if (fault !== undefined) return reportOf({ from: 'now', reason: 'The snapshots could not be copied.' })
  return reportOf(await restoreMoment(deps, source, { ...options, copied }))
}

/** Returns why they were not copied. The workdir of the fork has another path. */
async function copySnapshots(
  { files, state }: ForkSource,
  { directory, copied }: ForkFilesOptions,
): Promise<string | undefined> {
  const movedPaths = copied === undefined ? [] : [[await realpath(state.settings.workdir), copied] as const]
  return await files.snapshots.copyTo(directory, new Map(movedPaths)).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

async function restoreMoment(
  { workspace }: ConversationDeps,
  { log, redact }: ForkSource,
  { directory, copied, throughSeq, signal }: ForkFilesOptions & { readonly copied: string },
): Promise<ForkedFiles> {
  // Additional directories belong to the original, too.
  const places = { workdir: () => copied, additionalDirectories: () => [] }
  const rules = () => workspace.fileRules({ stateDirectory: directory, ...places })
  const { unfinished } = workspace.files
  // It takes no snapshot, which would name a commit.
  const headCommit = async () => undefined
  const snapshots = new WorkspaceSnapshots({ log, directory, ...places, rules, unfinished, redact, headCommit })
  const end = () => void snapshots.close()
  signal.addEventListener('abort', end, { once: true })
  try {
    signal.throwIfAborted()
    const restoreReport = await snapshots.restoreCopy(throughSeq)
    if (!restoreReport) return { from: 'now', reason: MOVED }
    const { snapshot_id, left_out, failed } = restoreReport
    const unrestoredFiles = [...left_out, ...failed]
    const count = unrestoredFiles.length > MAX_LEFT_OUT && { left_out_count: unrestoredFiles.length }
    return { from: 'snapshot', snapshot_id, left_out: unrestoredFiles.slice(0, MAX_LEFT_OUT), ...count }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Problem && UNAVAILABLE.has(error.code))) throw error
    return { from: 'now', reason: error.message }
  } finally {
    signal.removeEventListener('abort', end)
    await snapshots.close()
  }
}

/** There is no snapshot of this moment, or no git, or the copy has too many files. */
const UNAVAILABLE: ReadonlySet<string> = new Set(['snapshot_not_found', 'unavailable', 'workdir_too_large'])

const OFF = 'The original keeps no snapshots: file_checkpointing is off.'
const MOVED = 'The original worked in another directory then.'
