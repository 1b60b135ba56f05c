/** A port for a server that is started afterwards. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * The ports below those that the system gives to outgoing connections: one of them could take it before the server
 * does.
 */
const [FIRST_PORT, PORTS] = [10_000, 20_000]
/**
 * A process has so many of them, which it gives one after the other: another worker would else take one between the look
 * and the start, or while a server starts again.
 */
const OF_PROCESS = 100
const OWN_PORT = FIRST_PORT + (process.pid % (PORTS / OF_PROCESS)) * OF_PROCESS

let next = 0

/** A port nobody listens on, in neither family. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = OWN_PORT + (next++ % OF_PROCESS)
    if ((await isFree(port, '127.0.0.1')) && (await isFree(port, '::1'))) return port
  }
}

/** Listens on the port for a moment to find out. Where there is no IPv6, nobody has the port in it. */
async function isFree(port: number, host: string): Promise<boolean> {
  const listener = createServer().listen(port, host)
  const fault = await once(listener, 'listening').then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  )
  if (fault !== undefined) return fault !== 'EADDRINUSE'
  listener.close()
  await once(listener, 'close')
  return true
}
