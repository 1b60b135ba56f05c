/** What agents of this machine may use of the person's home: options and the settings file, checked against the disk. */
import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, normalize } from 'node:path'
import { z } from 'zod'
import type { HomeAccess } from '../../access/home-access.ts'
import { homeDirectory } from '../../config/paths.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'

/** In the settings file of the person. A project has no such settings. */
export const SandboxSettings = z.strictObject({ home_readable: z.array(z.string()).optional() })
type SandboxSettings = z.infer<typeof SandboxSettings>

export type HomeSettings = {
  /** Undefined: nothing. */
  readonly access: HomeAccess | undefined
  /** Whether the command line asks for some of it, and not only the settings file. */
  readonly isAsked: boolean
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

export const NO_HOME: HomeSettings = { access: undefined, isAsked: false, notices: [] }

/**
 * Throws a `UsageError` for an option that cannot be used. What a settings file names need not exist on each machine:
 * that is a notice. `hidden`: what stays hidden from every agent.
 */
export async function readHomeSettings(
  { homeReadable }: Pick<RunInvocation, 'homeReadable'>,
  { home_readable = [] }: SandboxSettings = {},
  hidden: readonly string[],
): Promise<HomeSettings> {
  if (homeReadable.length === 0 && home_readable.length === 0) return NO_HOME
  const home = await realpath(homeDirectory()).catch(() => homeDirectory())
  const found = await Promise.all([
    ...homeReadable.map((path) => readableAt(path, home, hidden)),
    ...home_readable.map((path) => readableAt(path, home, hidden)),
  ])
  const faults = found.map((each) => (typeof each === 'string' ? each : undefined))
  const fault = faults.slice(0, homeReadable.length).find((each) => each !== undefined)
  if (fault !== undefined) throw new UsageError(`--home-readable: ${fault}`)
  const readable = found.filter((each) => typeof each !== 'string')
  return {
    access: readable.length > 0 ? { home, readable } : undefined,
    isAsked: homeReadable.length > 0,
    notices: [
      ...faults.flatMap((each) => (each === undefined ? [] : [`home_readable of the settings file: ${each}`])),
      ...(readable.length > 0 ? [`the agent can read ${readable.map(({ at }) => tilde(at, home)).join(', ')}.`] : []),
    ],
  }
}

const tilde = (path: string, home: string): string => `~${path.slice(home.length)}`

/** Returns what is wrong with it as a sentence. Links are followed, and what they lead to must be in the home, too. */
async function readableAt(
  given: string,
  home: string,
  hidden: readonly string[],
): Promise<HomeAccess['readable'][number] | string> {
  const path = absolute(given)
  if (path === undefined) return `${given} is not a path in the home; write it as ~/… or as an absolute path.`
  try {
    const at = join(await realpath(dirname(path)), basename(path))
    const real = await realpath(path)
    // A user without a home has this one.
    const outside = home === '/' ? real : [at, real].find((each) => !isBelow(each, home))
    if (outside !== undefined) return outsideOf(given, outside, home)
    const inside = await firstAbove(real, hidden)
    return inside === undefined ? { at, real } : `${given} stays hidden: agents never see ${inside}.`
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return code === 'ENOENT' ? `${given} does not exist.` : `${given} cannot be read (${code}).`
  }
}

function absolute(given: string): string | undefined {
  const path = given.replace(/^~(?=\/|$)/, homeDirectory())
  return isAbsolute(path) ? normalize(path).replace(/(?<=.)\/$/, '') : undefined
}

function outsideOf(given: string, outside: string, home: string): string {
  if (outside === home) return `${given} is the whole home; name the files and directories in it.`
  return `${given} leads to ${outside}, which is not in the home ${home}.`
}

async function firstAbove(path: string, directories: readonly string[]): Promise<string | undefined> {
  const real = await Promise.all(directories.map((each) => realpath(each).catch(() => each)))
  return real.find((each) => path === each || isBelow(path, each))
}

const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(join(directory, '/')) && path !== directory
