/**
 * A file system that does not answer, as a network disk whose server is gone: the kernel does not end a process that has
 * asked it for a file. It needs root and FUSE.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'

export const canHangFiles = process.getuid?.() === 0 && process.platform === 'linux' && isUsable('/dev/fuse')

export type HangingFiles = AsyncDisposable & {
  /** Resolves when a process waits for it. */
  readonly asked: Promise<unknown>
}

/** Resolves when it is mounted. Everything that has waited for it fails as soon as it is disposed of. */
export async function mountHangingFiles(directory: string): Promise<HangingFiles> {
  const program = join(import.meta.dirname, 'children', 'answer-no-files.ts')
  const child = spawn(process.execPath, [program, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const [said] = await Promise.race([once(child.stdout, 'data'), exited])
  if (String(said) !== 'mounted') throw new Error(`the file system was not mounted: ${String(said)}`)
  return {
    asked: once(child.stdout, 'data'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
      execFileSync('umount', ['-l', directory])
    },
  }
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
