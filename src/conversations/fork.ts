/**
 * Forks a conversation: copies its log up to a point, its current configuration and secrets, and its workdir. The
 * original is not changed.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConversationView, ForkConversation } from '../contract/conversation.ts'
import { EVENT_VERSION } from '../contract/events/event.ts'
import { cursorAhead, Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { makeDirectories } from '../files/make-directories.ts'
import { enterAsGuest, leaveAsGuest } from '../workspace/workdirs/guest-workdirs.ts'
import { leaveWorkdir } from '../workspace/workdirs/shared-workdirs.ts'
import type { ConversationStorage } from '../storage/storage.ts'
import { removeTree } from '../files/trees/remove-tree.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { copyTree } from '../files/trees/copy-tree.ts'
import type { Conversation } from './conversation.ts'
import type { CreatedConversation } from './create.ts'
import { makeForkFiles } from './fork-files.ts'
import type { ForkSource } from './fork-source.ts'
import type { ConversationDeps } from './dependencies.ts'
import { readForkLlm } from './fork-llm.ts'
import { isolateReplay } from './replay-fork.ts'
import type { ReplayLimits } from './replay-fork.ts'
import { checkBudget } from './subagents/check-budget.ts'
import { createForkedLog, findBorder, findForkedFrom } from './forked-log.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { keptOf } from '../state/idempotency.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { openStored } from './open.ts'
import { startFirstRun } from './runs/first-run.ts'
import type { State } from '../state/state.ts'
import { codeOf } from '../lib/error-code.ts'

export type ForkOptions = {
  readonly id: string
  readonly request: ForkConversation
  readonly idempotency: Idempotency | undefined
  /** Aborts a slow copy. */
  readonly signal: AbortSignal
  readonly onChange: (state: State) => void
  /** Given for a fork that does its work once more, to be compared. */
  readonly replay?: ReplayLimits | undefined
}

/** The log is created last: until it exists, nobody sees the copy. Removes everything it created if it throws. */
export async function forkConversation(
  deps: ConversationDeps,
  source: ForkSource,
  { id, request, idempotency, signal, onChange, replay }: ForkOptions,
): Promise<CreatedConversation> {
  const { log, state } = source
  const { storage } = deps
  const { workdirRules } = deps.workspace
  const { version } = state
  if (version > EVENT_VERSION) throw fromNewer()
  const { at_seq = log.head } = request
  if (at_seq > log.head) throw cursorAhead('at_seq', at_seq, log.head)
  const throughSeq = await findBorder(log, at_seq)
  if (throughSeq < 1) throw beforeBeginning()
  // A refresh token is used once: two conversations cannot share it.
  const { mcp_oauth: _oauth, ...former } = await storage.conversation(source.id).readSecrets()
  const original = { settings: state.settings, secrets: former }
  const { settings: now, secrets: remainingSecrets } = replay
    ? await isolateReplay(deps, original, replay, source)
    : original
  const llm = await readForkLlm(deps, id, { settings: now, secrets: remainingSecrets }, request.llm_config)
  const { secrets, llm_config } = llm
  const redact = (text: string) => llm.redact(source.redact(text))
  refuseSecretsIn({ 'Idempotency-Key': idempotency?.key }, redact)
  if (replay) checkBudget({ ...now, llm_config }, deps.models, redact)

  const own = storage.conversation(id)
  await own.reserve()
  const guests = { storage, workdirBase: workdirRules.base }
  let copy: string | undefined
  // A directory that was created for the original is removed with the last conversation that shares it.
  const sharedWorkdir = request.workdir === 'share' && now.made_workdir === now.workdir ? now.made_workdir : undefined
  try {
    if (sharedWorkdir !== undefined) await storage.sharedWorkdirs.add(sharedWorkdir, [source.id, id])
    else if (request.workdir === 'share') await enterAsGuest(guests, now.workdir, id)
    const { made_workdir: _, idempotency: __, external_id: ___, title: formerTitle, ...keptSettings } = now
    const warnings = [...llm.warnings]
    if (request.workdir === 'copy') {
      copy = await makeWorkdir(deps, id)
      await own.markCopying()
      const { base, forbidden } = workdirRules
      const without = await Promise.all([base, ...forbidden].map((path) => realpath(path)))
      warnings.push(...(await copyTree(now.workdir, copy, { signal, without })).map(redact))
    }
    if (Object.values(secrets).some((group) => Object.keys(group).length > 0)) {
      await own.writeSecrets(secrets)
    }
    const forkFiles = await makeForkFiles(deps, source, { directory: own.directory, copied: copy, throughSeq, signal })
    warnings.push(...forkFiles.warnings)
    const title = request.title === undefined ? formerTitle : redact(request.title)
    const settings = {
      ...keptSettings,
      llm_config,
      ...(title !== undefined && { title }),
      ...withoutUndefined({ made_workdir: copy ?? sharedWorkdir }),
      ...(idempotency && { idempotency: { ...keptOf(idempotency), ...(warnings.length > 0 && { warnings }) } }),
      workdir: copy ?? now.workdir,
    }
    const forkedLog = createForkedLog({
      log,
      throughSeq,
      id,
      cwd: now.workdir,
      settings,
      files: forkFiles.files,
      now: Date.now(),
    })
    const storedLog = await own.copyLog(forkedLog.events, forkedLog.ending)
    return { conversation: await openStored(deps, { stored: storedLog, onChange }), warnings }
  } catch (error) {
    await removeFork(own, copy)
    if (sharedWorkdir !== undefined) await leaveWorkdir(storage.sharedWorkdirs, sharedWorkdir, id)
    else if (request.workdir === 'share') await leaveAsGuest(guests, now.workdir, id)
    throw error
  }
}

/** Adds which files the fork got when it was made. */
export async function withForkedFiles(view: ConversationView, log: EventLog): Promise<ConversationView> {
  const event = await findForkedFrom(log)
  return { ...view, ...(event?.files && { files: event.files }) }
}

/** Returns the id of the first run of the fork, which a repeated request does not start again. */
export async function startForkRun(fork: Conversation): Promise<string> {
  const event = await findForkedFrom(fork.log)
  return await startFirstRun(fork, event?.seq)
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

const beforeBeginning = () =>
  new Problem('invalid_request', 'at_seq is too early: no complete first event comes before it.')
