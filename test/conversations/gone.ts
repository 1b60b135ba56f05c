/** What holds for a conversation that was deleted, whatever was happening to it at that time. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ListConversations } from '../../src/contract/conversation.ts'
import type { Bench } from './fixtures.ts'

export async function expectGone(bench: Bench, id: string): Promise<void> {
  const outcome = { code: 'conversation_deleted' }
  await expect(bench.manager.open(id)).rejects.toMatchObject(outcome)
  await expect(bench.manager.delete(id)).rejects.toMatchObject(outcome)
  await expect(bench.create({ id })).rejects.toMatchObject(outcome)
  const { items } = await bench.manager.list(ListConversations.parse({}))
  expect(items.filter((item) => item.id === id)).toEqual([])
  expect(bench.manager.ownerOf(id)).toBeUndefined()
  // On a busy machine the data may be removed after the response.
  await expect.poll(() => readdir(join(bench.dataDir, 'sessions'))).not.toContain(id)
}

/** Deletes a conversation while readers open it. */
export async function deleteWhileOpening(bench: Bench, id: string): Promise<void> {
  const openings = Promise.allSettled([bench.manager.open(id), bench.manager.open(id)])
  await bench.manager.delete(id)
  for (const opening of await openings) {
    if (opening.status === 'fulfilled') expect(opening.value.log.ended).toBe('deleted')
    else expect(opening.reason).toMatchObject({ code: 'conversation_deleted' })
  }
  await expectGone(bench, id)
}
