/** Posts an event to a server that may be restarting. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestServer } from './server.ts'

/** Repeats the request until it is answered. The key makes every attempt the same event, so it is stored once. */
export async function postOnce(server: Pick<TestServer, 'call'>, id: string, name: string): Promise<void> {
  for (;;) {
    const answer = await server
      .call('POST', `/conversations/${id}/events`, { name }, { 'idempotency-key': name })
      .catch(() => undefined)
    if (answer?.status === 201) return
    await sleep(20)
  }
}
