/**
 * Forks a conversation: copies its log up to a point, its current configuration and secrets, and its workdir. The
 * original is not changed.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { ForkConversation } from '../contract/conversation.ts'
import { EVENT_VERSION } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import { makeDirectories } from '../files/make-directories.ts'
import { enterAsGuest, leaveAsGuest } from '../workspace/workdirs/guest-workdirs.ts'
import { leaveWorkdir } from '../workspace/workdirs/shared-workdirs.ts'
import type { ConversationStorage } from '../storage/storage.ts'
import { removeTree } from '../files/trees/remove-tree.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { copyTree } from '../files/trees/copy-tree.ts'
import type { Conversation } from './conversation.ts'
import type { Created } from './create.ts'
import type { ConversationDeps } from './dependencies.ts'
import { createForkedLog, findBorder } from './forked-log.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { keptOf } from '../state/idempotency.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { openStored } from './open.ts'
import type { State } from '../state/state.ts'
import { codeOf } from '../lib/error-code.ts'

export type ForkOptions = {
  readonly id: string
  readonly request: ForkConversation
  readonly idempotency: Idempotency | undefined
  /** Aborts a slow copy. */
  readonly signal: AbortSignal
  readonly onChange: (state: State) => void
}

/** The log is created last: until it exists, nobody sees the copy. Removes everything it created if it throws. */
export async function forkConversation(
  deps: ConversationDeps,
  source: Conversation,
  { id, request, idempotency, signal, onChange }: ForkOptions,
): Promise<Created> {
  const { log, state, redact } = source
  const { storage } = deps
  const { workdirRules } = deps.workspace
  const { version, settings: now } = state
  refuseSecretsIn({ 'Idempotency-Key': idempotency?.key }, redact)
  if (version > EVENT_VERSION) throw fromNewer()
  const { at_seq = log.head } = request
  if (at_seq > log.head) throw beyondEnd(at_seq, log.head)
  const throughSeq = await findBorder(log, at_seq)
  if (throughSeq < 1) throw beforeBeginning()
  // A refresh token is used once: two conversations cannot share it.
  const { mcp_oauth: _oauth, ...secrets } = await storage.conversation(source.id).readSecrets()

  const own = storage.conversation(id)
  await own.reserve()
  const guests = { storage, workdirBase: workdirRules.base }
  let copied: string | undefined
  // A directory that was created for the original is removed with the last conversation that shares it.
  const shared = request.workdir === 'share' && now.made_workdir === now.workdir ? now.made_workdir : undefined
  try {
    if (shared !== undefined) await storage.sharedWorkdirs.add(shared, [source.id, id])
    else if (request.workdir === 'share') await enterAsGuest(guests, now.workdir, id)
    const { made_workdir: _, idempotency: __, title: formerTitle, ...kept } = now
    const warnings: string[] = []
    if (request.workdir === 'copy') {
      copied = await makeWorkdir(deps, id)
      await own.markCopying()
      const { base, forbidden } = workdirRules
      const without = await Promise.all([base, forbidden].map((path) => realpath(path)))
      warnings.push(...(await copyTree(now.workdir, copied, { signal, without })).map(redact))
    }
    if (Object.values(secrets).some((group) => Object.keys(group).length > 0)) {
      await own.writeSecrets(secrets)
    }
    if (kept.file_checkpointing) warnings.push(...(await copySnapshots(source, own.directory, copied)).map(redact))
    const title = request.title === undefined ? formerTitle : redact(request.title)
    const settings = {
      ...kept,
      ...(title !== undefined && { title }),
      ...withoutUndefined({ made_workdir: copied ?? shared }),
      ...(idempotency && { idempotency: { ...keptOf(idempotency), ...(warnings.length > 0 && { warnings }) } }),
      workdir: copied ?? now.workdir,
    }
    const forked = createForkedLog({ log, throughSeq, id, cwd: now.workdir, settings, now: Date.now() })
    const stored = await own.copyLog(forked.events, forked.ending)
    return { conversation: await openStored(deps, { stored, onChange }), warnings }
  } catch (error) {
    await removeFork(own, copied)
    if (shared !== undefined) await leaveWorkdir(storage.sharedWorkdirs, shared, id)
    else if (request.workdir === 'share') await leaveAsGuest(guests, now.workdir, id)
    throw error
  }
}

/** The fork gets the snapshots of its original, if they can be copied; its workdir has another path. */
async function copySnapshots({ files, state }: Conversation, directory: string, workdir: string | undefined) {
  const moved = workdir === undefined ? [] : [[await realpath(state.settings.workdir), workdir] as const]
  const copying = files.snapshots.copyTo(directory, new Map(moved))
  return await copying.then(
    () => [],
    (error: unknown) => [`its snapshots were not copied: ${error instanceof Error ? error.message : String(error)}`],
  )
}

/** Remove the workdir first: as long as the mark exists, the next start of the server knows that it must be removed. */
async function removeFork(own: ConversationStorage, workdir: string | undefined): Promise<void> {
  if (workdir !== undefined) await removeTree(workdir)
  await own.discard()
}

/** Creates a new directory, never an existing one: that would hold somebody's files. */
async function makeWorkdir({ workspace }: ConversationDeps, id: string): Promise<string> {
  const { base } = workspace.workdirRules
  await makeDirectories(base, 0o700)
  const path = join(base, id)
  try {
    await mkdir(path)
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause
    throw new Problem('conversation_exists', 'A workdir for this id already exists; use another id.', { cause })
  }
  return await realpath(path)
}

const fromNewer = () =>
  new Problem(
    'conversation_from_newer_version',
    'A newer version of the server wrote this conversation; it can be read here, but not forked.',
  )

const beyondEnd = (at_seq: number, head: number) =>
  new Problem('cursor_ahead', `The log ends at event ${head}, before event ${at_seq}. Fork at an earlier one.`, {
    details: { at_seq, head },
  })

const beforeBeginning = () =>
  new Problem('invalid_request', 'at_seq is too early: no complete first event comes before it.')
