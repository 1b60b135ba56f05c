/** The sandbox as the tests need it: available, or they fail and say what is missing. */
import { homedir } from 'node:os'
import { findBubblewrap } from '../../src/sandbox/find-launcher.ts'
import type { ShellLauncher } from '../../src/sandbox/launch.ts'
import type { SandboxPlan } from '../../src/sandbox/mounts.ts'

export async function requireSandbox(
  plan: Pick<SandboxPlan, 'dataDir' | 'workdirBase'> & Partial<SandboxPlan>,
): Promise<ShellLauncher> {
  const found = await findBubblewrap({ keyFiles: [], home: homedir(), path: process.env['PATH']!, named: [], ...plan })
  if ('launcher' in found) return found.launcher
  throw new Error(
    `These tests need bubblewrap (Debian: apt-get install bubblewrap), and rights to use it: ${found.missing}.`,
  )
}
