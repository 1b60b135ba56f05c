/** The operations of AG-UI: run the agent of a thread and follow it, and stop it. Everything is rebuilt from the log. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { otherProfile } from '../../http/guards/create-or-find.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { createRequestFor, mayNotInstruct } from '../shared/create-request.ts'
import { openTentative, settleNew } from '../shared/settle-new.ts'
import { enterStream } from '../shared/enter-stream.ts'
import { parseField } from '../shared/fields.ts'
import { findThread, findThreadId, profileOfThread } from '../shared/find-thread.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { streamResponse } from '../shared/stream-response.ts'
import type { AgUiEvent } from './ag-ui-event.ts'
import type { BegunRun } from './begin-run.ts'
import { beginRun, nothingToDo, postedMessages } from './begin-run.ts'
import type { UserInputs } from './run-post.ts'
import { firstMessagesOf, instructionsOf, userInputsOf } from './new-messages.ts'
import { RunStream } from './run-stream.ts'
import type { RunInput } from './run-input.ts'
import { StopInput, frontendToolsOf, parseRunInput } from './run-input.ts'

export async function runAgent(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<undefined> {
  const input = parseRunInput(request.body)
  const userInputs = userInputsOf(input)
  const access = accessOf(request)
  const profile = profileOf(request)
  await requireProfile(deps, access, profile)
  // It makes no thread that it says nothing in.
  if (userInputs.messages.length === 0 && (await conversationOfThread(deps, request)) === undefined) throw nothingToDo()
  const signal = closeSignal(reply)
  const { conversation, isNew } = await threadFor(deps, access, profile, { input, userInputs })
  request.conversationId = conversation.id
  const release = deps.manager.hold(conversation.id)
  let leave: (() => void) | undefined
  let run: BegunRun | undefined
  try {
    // At the limit of streams it throws.
    leave = enterStream(deps, conversation.id)
    const instructions = isNew ? spokenInstructions(input, access) : undefined
    run = await beginRun(conversation, { input, userInputs, access, hashBody: request.server.hashBody, instructions })
    const stream = new RunStream(conversation, input, run)
    await streamResponse(
      { request, reply, signal },
      async function* () {
        for await (const events of stream.events(signal)) yield events.map(frameOf)
      },
      (error) => {
        const { message, code } = problemFor(error, request, conversation.redact)
        return frameOf({ type: 'RUN_ERROR', message, code })
      },
    )
  } finally {
    leave?.()
    release()
    // It has the system prompt of a request that was refused.
    if (isNew) await settleNew(deps, conversation, { hasBegun: run !== undefined })
  }
}

/** Interrupts the agent, also while it waits. */
export async function stopAgent(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const { threadId } = parseField(StopInput, request.body)
  const conversation = await findThread(deps, accessOf(request), threadId)
  if (!conversation || profileOfThread(conversation) !== profileOf(request))
    throw new Problem('conversation_not_found', 'There is no such thread.')
  request.conversationId = conversation.id
  return { threadId, status: await conversation.pause({ interrupt: true }) }
}

/** The conversation of the thread that a request names; undefined if it makes one, or is not valid. */
export async function conversationOfThread(deps: GatewayDeps, request: FastifyRequest): Promise<string | undefined> {
  const { threadId } = parseField(StopInput, request.body)
  return await findThreadId(deps, accessOf(request), threadId)
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
const profileOf = ({ params }: FastifyRequest): string => (params as { profile: string }).profile

/** Throws a `Problem` for an unknown profile, and for one that the key may not use. */
async function requireProfile({ profiles }: GatewayDeps, { limits }: Access, profile: string): Promise<void> {
  const sees = (name: string) => name === profile && (limits.profiles?.has(name) ?? true)
  if ((await (await profiles()).names(sees)).length > 0) return
  throw new Problem('profile_not_found', 'There is no such profile. GET /profiles lists them.')
}

async function threadFor(
  deps: GatewayDeps,
  access: Access,
  profile: string,
  { input, userInputs }: { readonly input: RunInput; readonly userInputs: UserInputs },
): Promise<{ readonly conversation: Conversation; readonly isNew: boolean }> {
  // A key of one conversation must not make any.
  const thread = await findThread(deps, access, input.threadId)
  if (thread && profileOfThread(thread) === profile) return { conversation: thread, isNew: false }
  if (thread) throw otherProfile()
  const instructions = spokenInstructions(input, access)
  postedMessages(firstMessagesOf(input, userInputs), { instructions })
  const wish = await createRequestFor(deps, access, {
    profile,
    tools: frontendToolsOf(input),
    metadata: undefined,
    instructions: instructionsOf(input),
    externalId: input.threadId,
  })
  return await openTentative(deps, access, wish)
}

/** The first message says what other keys put in the system prompt. */
function spokenInstructions(input: RunInput, access: Access): string | undefined {
  const text = mayNotInstruct(access) ? instructionsOf(input) : ''
  return text === '' ? undefined : text
}

const frameOf = (event: AgUiEvent): string => JSON.stringify({ ...event, timestamp: Date.now() })
