/**
 * Conversations by the ids of clients. The id of such a conversation follows from its external id, so that the storage, which
 * makes an id once, decides between two requests that race, also on two instances.
 */
import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { ConversationView, CreateConversation } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { ConversationManager } from '../manager.ts'

/** Conversations with one external id that other requests may delete while this one looks for the next, and ask again. */
const ATTEMPTS = 100

/** Another instance may be creating the conversation, in milliseconds. */
const WAIT_MS = 5000
const CHECK_MS = 100

type ExternalName = Pick<CreateConversation, 'user_id'> & { readonly external_id: string }
type Manager = Pick<ConversationManager, 'upToDate' | 'wasDeleted'> & {
  readonly pages: Pick<ConversationManager['pages'], 'viewWithoutOpening'>
}

export type FoundOrCreated = { readonly view: ConversationView; readonly isNew: boolean }

/** `create` makes the conversation with this id, or throws the `Problem` of an id that is taken. */
export async function findOrCreate(
  manager: Manager,
  externalName: ExternalName,
  create: (id: string) => Promise<ConversationView>,
): Promise<FoundOrCreated> {
  let generation = 0
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const id = idFor(externalName, generation)
    try {
      return { view: await create(id), isNew: true }
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'conversation_deleted') {
        // The other one is what the Idempotency-Key of the request has made: a late retry makes no other one.
        if (error.details?.['conversation_id'] !== id) throw error
        generation = await firstGeneration(manager, externalName, generation)
        continue
      }
      if (error.code !== 'conversation_exists') throw error
      const view = await viewOf(manager, id)
      if (view) return { view, isNew: false }
    }
  }
  throw new Problem('unavailable', 'Conversations with this external_id are being deleted all the time. Try again.')
}

/** Returns the id of the conversation with this external id, which can be on another instance; undefined if there is none. */
export async function findExternal(
  manager: Pick<ConversationManager, 'upToDate' | 'ownerOf' | 'wasDeleted'>,
  named: ExternalName,
): Promise<string | undefined> {
  await manager.upToDate()
  const first = idFor(named, 0)
  if (manager.ownerOf(first)) return first
  const id = idFor(named, await firstGeneration(manager, named))
  return manager.ownerOf(id) ? id : undefined
}

/** Returns the first that was not deleted: all before it were, one after the other. Reads few of them. */
async function firstGeneration(
  { wasDeleted }: Pick<ConversationManager, 'wasDeleted'>,
  externalName: ExternalName,
  from = 0,
): Promise<number> {
  const isGone = (generation: number) => wasDeleted(idFor(externalName, generation))
  if (!(await isGone(from))) return from
  let [deletedNumber, step] = [from, 1]
  while (await isGone(deletedNumber + step)) {
    deletedNumber += step
    step *= 2
  }
  let freeNumber = deletedNumber + step
  while (freeNumber - deletedNumber > 1) {
    const middle = Math.floor((deletedNumber + freeNumber) / 2)
    if (await isGone(middle)) deletedNumber = middle
    else freeNumber = middle
  }
  return freeNumber
}

/** Undefined: it was deleted meanwhile. Throws a `Problem` while another instance is creating it. */
async function viewOf({ pages, upToDate }: Manager, id: string): Promise<ConversationView | undefined> {
  for (let remainingChecks = WAIT_MS / CHECK_MS; remainingChecks > 0; remainingChecks--) {
    await upToDate()
    const view = await pages.viewWithoutOpening(id)
    if (view) return view
    await setTimeout(CHECK_MS)
  }
  throw new Problem('idempotency_in_flight', 'A request with this external_id is in progress; wait for its response.')
}

/** A UUID of version 8: 122 bits of a hash. */
function idFor({ user_id, external_id }: ExternalName, generation: number): string {
  const nameText = JSON.stringify(['external id', user_id ?? null, external_id, generation])
  const hex = createHash('sha256').update(nameText).digest('hex')
  // oxlint-disable-next-line typescript/no-non-null-assertion -- a hash has 64 digits
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
