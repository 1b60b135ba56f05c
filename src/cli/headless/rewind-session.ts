/** `-p --rewind`: takes a stored conversation and its files back, and prints what changes. */
import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AgentServerClient } from '../../client/client.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { RewindOutcome } from '../../contract/rewind.ts'
import { oneLine } from '../../telemetry/plain-text.ts'
import { CONVERSATION_ID } from '../../contract/values/conversation-id.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { findConversation, latestConversation } from '../conversation/find-conversation.ts'
import { refuseDisturbance } from '../conversation/refuse-resume.ts'
import { openStored } from '../conversation/open-stored.ts'
import { say, sayJson } from '../terminal/terminal.ts'

/** `target`: a seq, or the id of a `UserMessage` that is taken back with what came after it. */
export async function rewindSession(invocation: RunInvocation, target: string): Promise<void> {
  const { server, cwd, outputFormat, isDryRun, isForced } = invocation
  const { signal } = new AbortController()
  const workdir = server === undefined ? await realpath(resolve(cwd ?? '.')) : cwd
  await using host = await openStored({ server, apiKey: server === undefined ? undefined : invocation.apiKey }, signal)
  const foundView = await conversationOf(host.client, invocation, workdir, signal)
  refuseDisturbance(foundView, true)
  const { last_seq, file_checkpointing: files = false } = foundView
  const conversation = host.client.conversation(foundView.id)
  const body = {
    to_seq: await seqOf(conversation, target),
    last_seq,
    ...(files && { files }),
    ...(isForced && { force: true }),
  }
  const outcome = await conversation.rewind(body, isDryRun ? { dry_run: true } : {})
  if (outputFormat !== 'text') return sayJson(outcome)
  for (const line of linesOf(outcome, isDryRun)) say(`${oneLine(line)}\n`)
}

async function conversationOf(
  client: AgentServerClient,
  { resume }: RunInvocation,
  workdir: string | undefined,
  signal: AbortSignal,
): Promise<ConversationView> {
  if (typeof resume === 'object') return await findConversation(client, resume.id, signal)
  const latest = await latestConversation(client, resume === 'latest' ? workdir : undefined, signal)
  if (!latest) throw new UsageError('there is no conversation to rewind; name one with --resume ID.')
  return latest
}

async function seqOf(conversation: ConversationHandle, target: string): Promise<number> {
  if (/^\d{1,15}$/.test(target)) return Number(target)
  if (!CONVERSATION_ID.test(target))
    throw new UsageError(`--rewind ${target} is neither a seq nor the id of a message; sessions export shows both.`)
  const { type, seq } = await conversation.getEvent(target.toLowerCase())
  if (type !== 'UserMessage') throw new UsageError(`--rewind ${target} is the id of a ${type}, and not of a message.`)
  return seq - 1
}

function linesOf({ to_seq, files }: RewindOutcome, isDryRun: boolean): string[] {
  const would = isDryRun ? 'would be ' : ''
  const head = isDryRun
    ? `The conversation would go back to event ${to_seq}.`
    : `The conversation is back at event ${to_seq}.`
  if (!files) return [head, 'The files stay as they are: the conversation has no file checkpointing.']
  return [
    head,
    ...files.changed.map((path) => `${would}restored: ${path}`),
    ...files.removed.map((path) => `${would}removed: ${path}`),
    ...files.left_out.map(({ path, reason }) => `left alone (${reason}): ${path}`),
    ...files.failed.map(({ path, reason }) => `failed (${reason}): ${path}`),
    ...(isDryRun ? files.changed_since.map((path) => `changed by somebody else since: ${path}`) : []),
  ]
}
