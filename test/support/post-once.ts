/** Posts an event to a server that may be restarting. */
import type { TestServer } from './server.ts'
import { until } from './until.ts'

/** Repeats the request until it is answered. The key makes every attempt the same event, so it is stored once. */
export async function postOnce(server: Pick<TestServer, 'call'>, id: string, name: string): Promise<void> {
  await until(`the event ${name} to be stored`, async () => {
    const answer = await server
      .call('POST', `/conversations/${id}/events`, { name }, { 'idempotency-key': name })
      .catch(() => undefined)
    return answer?.status === 201
  })
}
