/** Slash commands at the beginning of a user's message: filled in before the message is stored, with what they print. */
import type { UserPart } from '../../contract/values/message.ts'
import { parseCommandCall } from '../../state/command-text.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import { createInFlight } from '../../idempotency/in-flight.ts'
import type { LiveState } from '../live/live-state.ts'
import type { StoredOnce } from '../../state/idempotency.ts'
import { seqsOfId } from '../../state/idempotency.ts'
import { rulesOf } from '../../state/state.ts'
import type { ConversationProject } from './conversation-project.ts'

/** The command as a `UserMessage` has it. */
export type PostedCommand = { readonly name: string; readonly text: string }

/** Its commands run in a session without the state of the agent's, which may be busy. */
const SESSION = 'slash-command'

/** All of its commands together, milliseconds. */
const TIMEOUT_MS = 60_000

type PostedCommandsParts = {
  readonly project: ConversationProject
  readonly state: LiveState
  readonly gate: PermissionGate
  readonly redact: (text: string) => Promise<string>
}

export class PostedCommands {
  readonly #parts: PostedCommandsParts
  readonly #inFlight = createInFlight()

  constructor(parts: PostedCommandsParts) {
    this.#parts = parts
  }

  /**
   * Calls `post` with the command that the message begins with, if there is one. Its commands for the shell run before
   * that, outside of the conversation's queue, and once for requests with the same marks.
   */
  async post<T>(
    content: readonly UserPart[],
    { idempotency, clientMessage }: StoredOnce,
    post: (command: PostedCommand | undefined) => Promise<T>,
  ): Promise<T> {
    const { project, state } = this.#parts
    const [first] = content
    const call = first?.type === 'text' ? parseCommandCall(first.text) : undefined
    const entry = call && project.entryOf(call)
    const isPosted =
      state.current.postedKeys.some(({ key }) => key === idempotency?.key) ||
      (clientMessage && !seqsOfId(state.current, clientMessage.id).next().done)
    if (!entry || isPosted) return await post(undefined)
    // The keys of clients have no space. A message that is sent again can have another key.
    const key = clientMessage ? `message ${clientMessage.id}` : idempotency?.key
    const work = async () => await post(await this.#expand(call, entry))
    return key === undefined ? await work() : await this.#inFlight(key, work)
  }

  /** Undefined if a rule denies it, or its file cannot be read: then it is an ordinary message. */
  async #expand(
    call: NonNullable<ReturnType<typeof parseCommandCall>>,
    entry: NonNullable<ReturnType<ConversationProject['entryOf']>>,
  ): Promise<PostedCommand | undefined> {
    const { project, redact } = this.#parts
    if (!this.#isPermitted(project.accessOfCommand(`/${entry.name}`))) return undefined
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const expansion = await project.expand(entry, call, { session: SESSION, signal })
    if ('fault' in expansion) return undefined
    const writtenCall = call.args === '' ? `/${call.name}` : `/${call.name} ${call.args}`
    return { name: entry.name, text: await redact(`${writtenCall}\n\n${expansion.text}`) }
  }

  /** The user has decided to use it: nobody is asked, and rules that deny hold. */
  #isPermitted(access: ReturnType<ConversationProject['accessOfCommand']>): boolean {
    const { state, gate } = this.#parts
    const { deny } = rulesOf(state.current).rules
    const rules = { mode: 'bypass', confirmation: false, rules: { allow: [], ask: [], deny } } as const
    return gate.verdictOn('SlashCommand', access, rules, false).behavior === 'allow'
  }
}
