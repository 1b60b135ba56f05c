/** Detects whether this host supports a sandbox, and which features, by creating an empty one. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { makeDirectoriesSync } from '../files/make-directories.ts'
import { afterRunning } from '../lib/bounded-wait.ts'
import { findProgram, HostEnvironment, killGroup, startProcess, runProgram } from '../lib/start-process.ts'
import { isOutOfRoom } from '../lib/error-code.ts'
import { createBubblewrapLauncher, trialArguments, type SandboxFeatures } from './bubblewrap-launcher.ts'
import { compileSeccompFilter } from './seccomp-filter.ts'
import type { SandboxPlan } from './mounts.ts'
import type { ShellLauncher } from './launch.ts'

const TRIAL_TIMEOUT_MS = 5000
const MAX_REASON = 300
/** The descriptor of the filter in a trial, after the standard streams. */
const FILTER_DESCRIPTOR = 3

/** `close`: after the last shell of the launcher has ended. */
export type LauncherSearch =
  | { readonly launcher: ShellLauncher; readonly close: () => void }
  | { readonly missing: string }

/** `missing` is the obstacle, as a clause. */
export async function findBubblewrap(plan: SandboxPlan): Promise<LauncherSearch> {
  if (process.platform !== 'linux') return { missing: 'bubblewrap exists on Linux only' }
  const bwrap = findProgram('bwrap', plan.path)
  if (bwrap === undefined) return { missing: 'bubblewrap is not installed: there is no bwrap on PATH' }
  const wantedFeatures = await featuresOf(bwrap, plan.dataDir)
  const close = () => void (wantedFeatures.filter !== undefined && closeSync(wantedFeatures.filter))
  let complaint: string | undefined
  for (const features of lesserFeatures(wantedFeatures)) {
    const firstComplaint = await complaintOf(bwrap, plan, features)
    if (firstComplaint === undefined) return { launcher: createBubblewrapLauncher({ ...plan, bwrap, features }), close }
    complaint ??= firstComplaint
  }
  close()
  return { missing: `bubblewrap does not work here: ${oneLine(complaint ?? 'it did not answer')}` }
}

/** Parses the features from bwrap's own help. Returns none if that fails: the trial then reports why. */
async function featuresOf(bwrap: string, dataDir: string): Promise<SandboxFeatures> {
  const helpText = runProgram(bwrap, ['--help'], { env: HostEnvironment.plain, timeout: TRIAL_TIMEOUT_MS })
  const { stdout: help } = await helpText.catch(() => ({ stdout: '' }))
  const program = /^ *--seccomp /m.test(help) ? compileSeccompFilter(process.arch) : undefined
  return {
    bindsDescriptors: /^ *--bind-fd /m.test(help),
    disablesUserNamespaces: /^ *--disable-userns /m.test(help),
    isolatesNetwork: true,
    filter: program && holdFile(program, dataDir),
  }
}

/**
 * Returns the feature sets to try, the largest first. User namespaces cannot be disabled if /proc/sys is read-only, a
 * kernel may be built without seccomp, and some containers permit all namespaces except the network's.
 */
function lesserFeatures(wantedFeatures: SandboxFeatures): SandboxFeatures[] {
  const withFilter = { ...wantedFeatures, disablesUserNamespaces: false }
  const tries = [wantedFeatures]
  if (wantedFeatures.disablesUserNamespaces && process.getuid?.() !== 0) tries.push(withFilter)
  if (wantedFeatures.filter !== undefined) tries.push({ ...withFilter, filter: undefined })
  return [...tries, ...tries.map((each) => ({ ...each, isolatesNetwork: false }))]
}

/** The directory in memory, for a disk that is full. */
const SHARED_MEMORY = '/dev/shm'

/** Opens a file without a name, which lives until it is closed. */
function holdFile(bytes: Uint8Array, directory: string): number {
  try {
    return holdFileIn(directory, bytes)
  } catch (error) {
    if (!isOutOfRoom(error)) throw error
    return holdFileIn(SHARED_MEMORY, bytes)
  }
}

function holdFileIn(directory: string, bytes: Uint8Array): number {
  makeDirectoriesSync(directory, 0o700)
  const path = join(directory, `.seccomp-${randomUUID()}`)
  try {
    writeFileSync(path, bytes, { flag: 'wx', mode: 0o600 })
    return openSync(path, 'r')
  } finally {
    rmSync(path, { force: true })
  }
}

/** Returns the error output of a failed bwrap; undefined if it succeeded. */
function complaintOf(bwrap: string, plan: SandboxPlan, features: SandboxFeatures): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const filter = features.filter === undefined ? undefined : openSync(`/proc/self/fd/${features.filter}`, 'r')
  const args = trialArguments(plan, features, filter === undefined ? undefined : FILTER_DESCRIPTOR)
  const child = startProcess(bwrap, args, {
    env: HostEnvironment.plain,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', ...(filter === undefined ? [] : [filter])],
  })
  if (filter !== undefined) closeSync(filter)
  // If only bwrap were killed while it makes the sandbox, the process inside would hold the output permanently.
  const cancel = afterRunning(TRIAL_TIMEOUT_MS, () => killGroup(child))
  let errorText = ''
  child.stderr
    ?.setEncoding('utf8')
    .on('data', (text: string) => (errorText = (errorText + text).slice(0, MAX_REASON * 2)))
  child.once('error', (error) => resolve(error.message))
  child.once('close', (code, signal) => {
    cancel()
    if (code === 0) resolve(undefined)
    else resolve(errorText.trim() || (signal ? 'it did not answer' : `it exited with code ${code}`))
  })
  return promise
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').slice(0, MAX_REASON).replace(/\.$/, '')
