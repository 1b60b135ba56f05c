/** A port for a server that is started afterwards. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Server } from 'node:net'

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

/** No other process has these: it listens on the first of them. */
const OWN_PORT = await takePorts(process.pid)

let next = 0

/** A port nobody listens on, in neither family. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = OWN_PORT + 1 + (next++ % (OF_PROCESS - 1))
    if ((await isFree(port, '127.0.0.1')) && (await isFree(port, '::1'))) return port
  }
}

/** Takes the ports of a process until it ends, also of another test run on this machine. Returns the first of them. */
export async function takePorts(number: number): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (number++ % (PORTS / OF_PROCESS)) * OF_PROCESS
    const listener = await listenOn(port, '127.0.0.1')
    if (typeof listener === 'string') continue
    listener.unref()
    return port
  }
}

/** Listens on the port for a moment to find out. Where there is no IPv6, nobody has the port in it. */
async function isFree(port: number, host: string): Promise<boolean> {
  const listener = await listenOn(port, host)
  if (typeof listener === 'string') return listener !== 'EADDRINUSE'
  listener.close()
  await once(listener, 'close')
  return true
}

/** Resolves to the code of the error if it cannot. */
async function listenOn(port: number, host: string): Promise<Server | string> {
  const listener = createServer().listen(port, host)
  return await once(listener, 'listening').then(
    () => listener,
    (error: NodeJS.ErrnoException) => String(error.code),
  )
}
