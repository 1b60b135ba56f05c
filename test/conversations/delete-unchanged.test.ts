/** Deletes that hold only as long as nothing else happens in the conversation, and the ids that they leave. */
import { afterAll, describe, expect, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { Problem } from '../../src/contract/problem.ts'
import { findExternal, findOrCreate } from '../../src/conversations/profiles/external-ids.ts'
import type { ConversationManager } from '../../src/conversations/manager.ts'
import { endTentative } from '../../src/http/guards/create-or-find.ts'
import { deleteUnused, openTentative } from '../../src/protocols/shared/settle-new.ts'
import { eventsOf, setBench } from './fixtures.ts'

const bench = await setBench({})
afterAll(() => bench[Symbol.asyncDispose]())
const { manager } = bench

describe('a conversation whose first message was refused', () => {
  test('is deleted', async () => {
    const conversation = await bench.converse()
    await deleteUnused(manager, conversation)
    await expect(manager.open(conversation.id)).rejects.toMatchObject({ code: 'conversation_deleted' })
  })

  test('stays with a message that is posted between the look and the delete', async () => {
    const conversation = await bench.converse()
    const late: Pick<ConversationManager, 'delete'> = {
      async delete(id, options) {
        await conversation.post({ message: 'Hello', run: false })
        return await manager.delete(id, options)
      },
    }
    await deleteUnused(late, conversation)
    expect((await eventsOf(await manager.open(conversation.id))).map(({ type }) => type)).toContain('UserMessage')
  })

  test.each([0, 1, 2, 3, 5, 8, 13])('loses no accepted message that was posted %i steps before it', async (steps) => {
    const conversation = await bench.converse()
    const posting = conversation.post({ message: 'Hello', run: false }).then(
      () => 'taken',
      (error: Problem) => error.code,
    )
    for (let step = 0; step < steps; step++) await Promise.resolve()
    await deleteUnused(manager, conversation)
    const isThere = await manager.open(conversation.id).then(
      () => true,
      () => false,
    )
    expect([await posting, isThere]).toEqual(isThere ? ['taken', true] : ['conversation_deleted', false])
  })
})

test('a delete that cannot be recorded leaves a conversation that works', async () => {
  const conversation = await bench.converse()
  const { log } = conversation
  const full = new Problem('storage_full', 'The disk is full.')
  await expect(log.endAt(log.head, () => Promise.reject(full))).rejects.toBe(full)
  await expect(log.endAt(log.head - 1, async () => {})).rejects.toMatchObject({ code: 'conversation_changed' })
  expect((await conversation.post({ message: 'Hello', run: false })).seq).toBe(log.head)
})

test('a conversation that cannot be opened does not stay tentative', async () => {
  const access = Access.master()
  const broken = new Problem('conversation_damaged', 'The log is damaged.')
  let id = ''
  const { open } = manager
  Object.assign(manager, {
    open: async (opened: string) => {
      id = opened
      throw broken
    },
  })
  const wish = CreateConversation.parse({ external_id: 'order-17', llm_config: { model: 'scripted' } })
  await expect(openTentative({ manager }, access, wish).finally(() => Object.assign(manager, { open }))).rejects.toBe(
    broken,
  )
  expect(endTentative(id)).toBe(false)
})

test('an external id is used again however often its conversations were deleted, and few of them are looked at', async () => {
  const deleted = new Set<string>()
  const known = new Set<string>()
  let looks = 0
  const directory = {
    upToDate: async () => {},
    wasDeleted: async (id: string) => {
      looks++
      return deleted.has(id)
    },
    ownerOf: (id: string) => (known.has(id) ? { id, userId: undefined, profile: undefined, preview: '' } : undefined),
    pages: { viewWithoutOpening: async () => undefined },
  }
  const named = { external_id: 'order-17', user_id: undefined }
  const make = () =>
    findOrCreate(directory, named, async (id) => {
      if (deleted.has(id)) throw new Problem('conversation_deleted', 'gone', { details: { conversation_id: id } })
      known.add(id)
      return { id } as never
    })
  for (let time = 0; time < 3000; time++) {
    looks = 0
    const { view, isNew } = await make()
    expect(isNew).toBe(true)
    expect(await findExternal(directory, named)).toBe(view.id)
    expect(looks).toBeLessThan(60)
    known.delete(view.id)
    deleted.add(view.id)
  }
  expect(deleted.size).toBe(3000)
})
