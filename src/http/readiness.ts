/** Checks whether the server is ready: it runs, its data directory is writable, and its database answers. */
import { open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readiness } from '../contract/server.ts'
import { settlesWithin } from '../lib/bounded-wait.ts'

export type ReadinessProbe = () => Promise<Readiness>

/** The endpoint is public; the disk is checked at most this often, in milliseconds. */
const CHECK_EVERY_MS = 1000

/** A disk that takes longer than this to write one byte hangs; in milliseconds. */
const TIMEOUT_MS = 2000

export type ReadinessDeps = {
  readonly dataDir: string
  /** Returns false while a database has not answered for so long that requests are refused, or this instance is suspended. */
  readonly storageAnswers: () => boolean
  readonly phase: () => 'starting' | 'running' | 'stopping'
}

export function createReadiness({ dataDir, storageAnswers, phase }: ReadinessDeps): ReadinessProbe {
  let lastCheck = { at: -Infinity, writable: Promise.resolve(true) }
  let knownFault: string | undefined
  const look = async () => {
    await write(dataDir)
    // Another directory with its name is not locked by this server. The lock file is open, so that its number stays.
    const now = await identityOf(join(dataDir, 'lock.db'))
    if (now !== (knownFault ??= now)) throw new Error(`${dataDir} is another directory than at the start`)
  }
  const isWritable = oneAtATime(look)
  return async () => {
    const now = phase()
    if (now !== 'running') return { status: 'unavailable', reason: now }
    if (performance.now() - lastCheck.at > CHECK_EVERY_MS) lastCheck = { at: performance.now(), writable: isWritable() }
    return storageAnswers() && (await lastCheck.writable)
      ? { status: 'ok' }
      : { status: 'unavailable', reason: 'storage' }
  }
}

/**
 * Returns true if the work succeeds in time. While it hangs it is not started again: each would occupy another thread, until
 * none is left for the other disks.
 */
function oneAtATime(work: () => Promise<void>): () => Promise<boolean> {
  let running: Promise<void> | undefined
  return () => {
    running ??= work().finally(() => (running = undefined))
    return settlesWithin(TIMEOUT_MS, running).catch(() => false)
  }
}

const identityOf = (path: string) =>
  stat(path, { bigint: true }).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => 'none',
  )

/** Writes a file: permissions alone do not reveal a full or removed disk. */
async function write(directory: string): Promise<void> {
  const path = join(directory, '.ready')
  try {
    await using file = await open(path, 'w', 0o600)
    await file.write('1')
  } finally {
    await rm(path, { force: true })
  }
}
