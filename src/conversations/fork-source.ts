/** What a fork reads of its original. The original of a replay may be at another instance, which keeps it. */
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { readSnapshot } from '../state/snapshot.ts'
import { WorkspaceSnapshots } from '../workspace/snapshots/snapshots.ts'
import { ConversationSecrets } from './config/secrets.ts'
import type { Conversation } from './conversation.ts'
import type { ConversationDeps } from './dependencies.ts'
import { foldLog } from './registry/read-state.ts'

export type ForkSource = Pick<Conversation, 'id' | 'state' | 'redact' | 'redactAnyCase'> & {
  readonly log: Pick<EventLog, 'conversationId' | 'head' | 'read' | 'append'>
  readonly files: { readonly snapshots: Pick<WorkspaceSnapshots, 'copyTo'> }
}

/**
 * Opens the conversation, or reads what is stored of it now if another instance has it. Throws the `Problem` `unavailable` if
 * that one has its files, too.
 */
export async function findForkSource(
  deps: ConversationDeps,
  id: string,
  open: (id: string) => Promise<Conversation>,
): Promise<ForkSource> {
  const { storage } = deps
  const owner = await storage.instances?.otherOwnerOf(id)
  if (!owner) return await open(id)
  if (!storage.sharesFiles) throw new Problem('unavailable', filesAreElsewhere(id))
  return await readForkSource(deps, id)
}

async function readForkSource({ storage, workspace, createRedactor, logger }: ConversationDeps, id: string) {
  // Views of a shared storage keep nothing open.
  const view = await storage.view(id)
  const state = await foldLog(view, await readSnapshot(storage, id))
  const own = storage.conversation(id)
  const redactor = createRedactor(id)
  const { redact, redactAnyCase } = redactor
  const refuseWrites = async (): Promise<never> => {
    throw new Error(`Another instance has conversation ${id}: nothing of it is written here.`)
  }
  // It registers the values with the redactor.
  void new ConversationSecrets({ redactor, keptValues: await own.readSecrets(), write: refuseWrites, id, logger })
  const log = { conversationId: id, head: view.head, read: view.read.bind(view), append: refuseWrites }
  const { directory } = own
  const workdir = () => state.settings.workdir
  const additionalDirectories = () => state.settings.additional_directories ?? []
  const snapshots = new WorkspaceSnapshots({
    log,
    directory,
    workdir,
    additionalDirectories,
    rules: () => workspace.fileRules({ stateDirectory: directory, workdir, additionalDirectories }),
    unfinished: workspace.files.unfinished,
    redact,
    headCommit: async () => undefined,
  })
  return { id, state, redact, redactAnyCase, log, files: { snapshots } }
}

const filesAreElsewhere = (id: string): string =>
  `The files of conversation ${id} are on the disk of another instance. Send the request to that one, or give all instances an OPENHANDS_SHARED_DIR.`
