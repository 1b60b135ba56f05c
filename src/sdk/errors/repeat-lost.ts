/** Repeats requests that the client does not repeat by itself, but that do the same or nothing a second time. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import { delayAfter, sleep } from '../../client/request/delay.ts'

const MAX_ATTEMPTS = 6

/**
 * Repeats a request while there is no response. The last error, and any other, is thrown: it may say that the first
 * request arrived.
 */
export async function repeatLost<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await send()
    } catch (error) {
      const isLost = error instanceof AgentServerError && error.code === 'connection_failed'
      if (!isLost || attempt === MAX_ATTEMPTS) throw error
      await sleep(delayAfter(attempt), signal)
    }
}
