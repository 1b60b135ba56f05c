/** The files of a rewind: what refuses it, and what is stored about it. */
import { Problem } from '../../contract/problem.ts'
import type { RewindOutcome, RewindRequest } from '../../contract/rewind.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ConversationFiles } from '../../workspace/files/files.ts'

type FilesParts = {
  readonly log: EventLog
  readonly files: Pick<ConversationFiles, 'snapshots'>
}

type Report = NonNullable<RewindOutcome['files']>

/** Paths that an error names. */
const MAX_NAMED = 100

/** Changes nothing. Throws a `Problem`: `snapshot_not_found`, and `unavailable` without git. */
export async function planFiles({ files }: Pick<FilesParts, 'files'>, toSeq: number): Promise<Report> {
  return ofReport(await files.snapshots.planRestore(toSeq))
}

/**
 * `isWhole`: false while calls of the agent may be changing files, so that what differs from the last snapshot may be its own.
 * Throws `files_changed` before anything is changed.
 */
export async function restoreFiles(
  { files, log }: FilesParts,
  { to_seq, force = false }: RewindRequest,
  isWhole: boolean,
): Promise<Report> {
  const mayProceed = (plan: Report) => {
    if (isWhole && !force) refuseChanged(plan)
  }
  return ofReport(await files.snapshots.restore(to_seq, log.head, (plan) => mayProceed(ofReport(plan))))
}

export function refuseChanged({ changed_since: paths }: Report): void {
  if (paths.length === 0) return
  throw new Problem(
    'files_changed',
    `${paths.length} paths have changed since the last snapshot, such as ${paths[0]}. A rewind keeps them in a snapshot, and replaces them only with force: true.`,
    { details: { paths: paths.slice(0, MAX_NAMED), count: paths.length } },
  )
}

type SnapshotReport = Awaited<ReturnType<ConversationFiles['snapshots']['planRestore']>>

const ofReport = (report: SnapshotReport): Report => ({
  snapshot_id: report.snapshot_id,
  changed: [...report.changed],
  removed: [...report.removed],
  ...(report.lines && { insertions: report.lines.added, deletions: report.lines.removed }),
  changed_since: [...report.changed_since],
  left_out: [...report.left_out],
  failed: [...report.failed],
})
