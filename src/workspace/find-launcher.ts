/** Finds out whether there can be a wall on this host, by building one around nothing. */
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { createBubblewrapLauncher, trialArguments } from './bubblewrap-launcher.ts'
import type { ShellLauncher } from './shell.ts'
import type { WallPlan } from './wall-mounts.ts'

const TRIAL_TIMEOUT_MS = 5000
const MAX_REASON = 300

export type Found = { readonly launcher: ShellLauncher } | { readonly missing: string }

/** `missing` is what stands in the way, as a clause. */
export async function findBubblewrap(plan: WallPlan): Promise<Found> {
  if (process.platform !== 'linux') return { missing: 'bubblewrap exists on Linux only' }
  const bwrap = findProgram('bwrap', plan.path)
  if (bwrap === undefined) return { missing: 'bubblewrap is not installed: there is no bwrap on PATH' }
  const wall = { ...plan, bwrap }
  const complain = (more: readonly string[]) => complaintOf(bwrap, trialArguments(wall, more), { PATH: plan.path })
  if ((await complain(['--unshare-net'])) === undefined) return { launcher: createBubblewrapLauncher(wall, true) }
  // Some containers permit all namespaces but this one.
  const complaint = await complain([])
  if (complaint === undefined) return { launcher: createBubblewrapLauncher(wall, false) }
  return { missing: `bubblewrap does not work here: ${oneLine(complaint)}` }
}

/** What a program said that failed; undefined when it did not. Without execa, whose first use alone takes milliseconds. */
function complaintOf(file: string, args: readonly string[], env: Record<string, string>): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  execFile(file, args, { env, timeout: TRIAL_TIMEOUT_MS }, (error, _, stderr) => {
    if (error) resolve(stderr.trim() || (error.killed ? 'it did not answer' : error.message))
    else resolve(undefined)
  })
  return promise
}

/** Not among the programs of packages and projects (npm puts those first on PATH): agents write there. */
export function findProgram(name: string, path: string): string | undefined {
  const isOfProject = (directory: string) =>
    /\/node_modules(\/|$)/.test(directory) || isInside(directory, process.cwd())
  const directories = path.split(':').filter((directory) => isAbsolute(directory) && !isOfProject(directory))
  const candidates = directories.map((directory) => join(directory, name))
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

const isInside = (path: string, directory: string) => `${path}/`.startsWith(directory === '/' ? '//' : `${directory}/`)

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').slice(0, MAX_REASON).replace(/\.$/, '')
