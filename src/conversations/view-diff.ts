/** What has changed in the files of a conversation, for clients. */
import type { DiffPage, GetDiff } from '../contract/diff.ts'
import type { GetGitDiff, GitDiff } from '../contract/git.ts'
import { holds } from '../contract/events/rewound.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import type { State } from '../state/state-shape.ts'
import { viewDiff } from '../workspace/snapshots/diff-view.ts'
import { findSnapshot } from '../workspace/snapshots/find-snapshot.ts'
import { listSnapshots } from '../workspace/snapshots/prune-snapshots.ts'
import type { Conversation } from './conversation.ts'

type Parts = Pick<Conversation, 'files' | 'log' | 'redact' | 'state'>

/** Throws a `Problem` if there is no snapshot of one of the moments. */
export async function viewConversationDiff(
  { files, log, redact, state }: Parts,
  query: GetDiff,
  signal: AbortSignal,
): Promise<DiffPage> {
  const { snapshots } = files
  return await viewDiff({ snapshots, redact, runStart: () => startOfLastRun(log, state) }, query, signal)
}

/** The snapshots contain the commits for `run` and `start`. Throws a `Problem` if there is no snapshot. */
export async function viewGitDiff(
  { files, log, state }: Omit<Parts, 'redact'>,
  query: GetGitDiff,
  signal: AbortSignal,
): Promise<GitDiff> {
  if (query.base !== 'run' && query.base !== 'start') return await files.git.diff(query, signal)
  const seq = query.base === 'run' ? (await startOfLastRun(log, state)) - 1 : 0
  const foundSnapshot = await findSnapshot(log, await listSnapshots(log), Math.max(seq, 0))
  if (!foundSnapshot)
    throw new Problem(
      'snapshot_not_found',
      `No snapshot says where ${query.base === 'run' ? 'the run' : 'the conversation'} began: with file_checkpointing, one is taken before the first change. Use base=head.`,
    )
  return await files.git.diff(query, signal, { commit: foundSnapshot.head })
}

const STATUS_UPDATES = new Set(['StatusUpdate'])
const PAGE = 100

/** Seq of the event that the last run began with which was not rewound; 0 if there was none. */
async function startOfLastRun(log: EventLog, { rewound }: Pick<State, 'rewound'>): Promise<number> {
  let start = 0
  let runId: string | undefined
  for (let beforeSeq: number | undefined = log.head + 1; beforeSeq !== undefined;) {
    const { events, scannedTo } = await log.read({ types: STATUS_UPDATES, order: 'desc', limit: PAGE, beforeSeq })
    for (const { seq, event } of events) {
      if (event.type !== 'StatusUpdate' || event.run_id === undefined || !holds(rewound, event)) continue
      runId ??= event.run_id
      if (event.run_id !== runId) return start
      start = seq
    }
    beforeSeq = scannedTo
  }
  return start
}
