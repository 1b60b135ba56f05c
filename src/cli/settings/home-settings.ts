/** What agents of this machine may use of the person's home: options and the settings file, checked against the disk. */
import { readlink, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, normalize } from 'node:path'
import { z } from 'zod'
import type { HomeAccess } from '../../access/home-access.ts'
import { whyNotSearchable } from '../../access/home-secrets.ts'
import { sshAgentSocket } from '../../config/environment.ts'
import { homeDirectory } from '../../config/paths.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'

/** A part of the settings file of the person. A project has no such settings. */
export const SandboxSettings = z.strictObject({
  home_readable: z.array(z.string()).optional(),
  ssh_agent: z.boolean().optional(),
  package_cache: z.boolean().optional(),
})
type SandboxSettings = z.infer<typeof SandboxSettings>

export type HomeSettings = {
  /** Undefined: nothing. */
  readonly access: HomeAccess | undefined
  /** Whether the command line asks for some of it, and not only the settings file. */
  readonly isRequested: boolean
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

export const NO_HOME: HomeSettings = { access: undefined, isRequested: false, notices: [] }

type Readable = HomeAccess['readable'][number]
/** What is wrong, as a sentence. */
type Fault = { readonly fault: string }
type HomeOptions = Pick<RunInvocation, 'homeReadable' | 'sshAgent' | 'packageCache'>

/**
 * Throws a `UsageError` for an option that cannot be used. What a settings file names need not exist on each machine:
 * that is a notice. `hidden`: what stays hidden from every agent. `workdirs`: where the agent may change each link.
 */
export async function readHomeSettings(
  { homeReadable, sshAgent, packageCache: wantsCache }: HomeOptions,
  { home_readable = [], ssh_agent = false, package_cache = false }: SandboxSettings = {},
  { hidden, workdirs }: { readonly hidden: readonly string[]; readonly workdirs: readonly string[] },
): Promise<HomeSettings> {
  const isRequested = homeReadable.length > 0 || sshAgent || wantsCache
  const packageCache = wantsCache || package_cache
  if (!isRequested && home_readable.length === 0 && !ssh_agent && !packageCache) return NO_HOME
  const home = await realpath(homeDirectory()).catch(() => homeDirectory())
  const find = (paths: readonly string[]) =>
    Promise.all(paths.map((path) => readableAt(path, { home, hidden, workdirs })))
  const socket = sshAgent || ssh_agent ? await findSocket() : undefined
  const askedPaths = [...(await find(homeReadable)).map(withSetting('--home-readable')), ...(sshAgent ? [socket] : [])]
  const settingPaths = (await find(home_readable)).map(withSetting('home_readable of the settings file'))
  const fault = askedPaths.find(isFault)
  if (fault) throw new UsageError(fault.fault)
  const path = isFault(socket) ? undefined : socket
  const knownHosts = path === undefined ? [] : await find(KNOWN_HOSTS)
  const readable = [...askedPaths, ...settingPaths, ...knownHosts].filter(
    (each) => typeof each === 'object' && 'at' in each,
  )
  const isUsed = readable.length > 0 || path !== undefined
  return {
    access: isUsed || packageCache ? { home, readable, sshAgent: path, packageCache } : undefined,
    isRequested: isRequested,
    notices: [
      ...[...settingPaths, socket].filter(isFault).map((each) => each.fault),
      ...(isUsed ? [describe(readable, home, path)] : []),
    ],
  }
}

/** They need not exist. */
const KNOWN_HOSTS = ['~/.ssh/known_hosts', '~/.ssh/known_hosts2']

const isFault = (entry: Readable | Fault | string | undefined): entry is Fault =>
  typeof entry === 'object' && 'fault' in entry

const withSetting =
  (setting: string) =>
  (entry: Readable | Fault): Readable | Fault =>
    isFault(entry) ? { fault: `${setting}: ${entry.fault}` } : entry

function describe(readable: readonly Readable[], home: string, sshAgent: string | undefined): string {
  const paths = readable.map(({ at }) => `~${at.slice(home.length)}`).join(', ')
  const parts = [...(paths === '' ? [] : [`read ${paths}`]), ...(sshAgent === undefined ? [] : ['use your ssh agent'])]
  return `the agent can ${parts.join(', and ')}.`
}

/** Returns the real path. */
async function findSocket(): Promise<string | Fault> {
  const path = sshAgentSocket()
  if (path === undefined)
    return { fault: 'there is no ssh agent: SSH_AUTH_SOCK is not set. Start one, as with eval "$(ssh-agent)".' }
  const fault = `there is no ssh agent at ${path}, which SSH_AUTH_SOCK names; start one and set the variable again.`
  try {
    const real = isAbsolute(path) ? await realpath(path) : undefined
    return real !== undefined && (await stat(real)).isSocket() ? real : { fault }
  } catch {
    return { fault }
  }
}

/** Links are followed, and what they lead to must be in the home, too. */
async function readableAt(
  givenPath: string,
  { home, hidden, workdirs }: { home: string; hidden: readonly string[]; workdirs: readonly string[] },
): Promise<Readable | Fault> {
  const path = absolute(givenPath)
  if (path === undefined)
    return { fault: `${givenPath} is not a path in the home; write it as ~/… or as an absolute path.` }
  try {
    const at = join(await realpath(dirname(path)), basename(path))
    const real = await realpath(path)
    const link = untrustedLink(await linksOn(path), workdirs)
    if (link !== undefined)
      return {
        fault: `${givenPath} leads through the link ${link}, which an agent may have made; name ${real} itself.`,
      }
    // A user without a home has this one.
    const outside = home === '/' ? real : [at, real].find((each) => !isBelow(each, home))
    if (outside !== undefined) return { fault: outsideOf(givenPath, outside, home) }
    const inside = await firstAbove(real, hidden)
    if (inside !== undefined) return { fault: `${givenPath} stays hidden: agents never see ${inside}.` }
    const why = whyNotSearchable(home, { at, real })
    return why === undefined ? { at, real } : { fault: `${givenPath} is not shown, because ${why}.` }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return { fault: code === 'ENOENT' ? `${givenPath} does not exist.` : `${givenPath} cannot be read (${code}).` }
  }
}

function absolute(givenPath: string): string | undefined {
  const path = givenPath.replace(/^~(?=\/|$)/, homeDirectory())
  return isAbsolute(path) ? normalize(path).replace(/(?<=.)\/$/, '') : undefined
}

/** A system follows fewer links, and reports a loop. */
const MAX_LINKS = 40

/** The links that the system follows on a path, each by its real place. */
async function linksOn(path: string): Promise<string[]> {
  const links: string[] = []
  let [place, rest] = ['/', path.split('/')]
  while (rest.length > 0 && links.length < MAX_LINKS) {
    const [name = '', ...others] = rest
    rest = others
    const at = join(place, name)
    const target = await readlink(at).catch(() => undefined)
    if (target === undefined) place = at
    else {
      links.push(at)
      rest = [...target.split('/'), ...others]
      if (isAbsolute(target)) place = '/'
    }
  }
  return links
}

/**
 * A person makes a link to a file, as to that of a repository of such files. An agent that works there can put a link to
 * any other file in its place, which the next command would show.
 */
function untrustedLink(links: readonly string[], workdirs: readonly string[]): string | undefined {
  return links.find((link) => workdirs.some((each) => isBelow(link, each))) ?? links[1]
}

function outsideOf(givenPath: string, outside: string, home: string): string {
  if (outside === home) return `${givenPath} is the whole home; name the files and directories in it.`
  return `${givenPath} leads to ${outside}, which is not in the home ${home}.`
}

async function firstAbove(path: string, directories: readonly string[]): Promise<string | undefined> {
  const real = await Promise.all(directories.map((each) => realpath(each).catch(() => each)))
  return real.find((each) => path === each || isBelow(path, each))
}

const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(join(directory, '/')) && path !== directory
