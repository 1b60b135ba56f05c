/** The name under which a person commits, so that commits of agents on the person's own machine have it. */
import type { HostEnvironment } from '../lib/start-process.ts'
import { findProgram, runProgram } from '../lib/start-process.ts'

/** Keys of git-config(1), such as `user.email`, with their values: each byte is a character (latin1). */
export type GitIdentity = ReadonlyMap<string, string>

const KEYS = String.raw`^(user|author|committer)\.(name|email)$`

/** Git needs some 3 ms. A repository can make it read what never ends, such as a pipe, as a part of its configuration. */
const TIMEOUT_MS = 2000
/** A repository can name anybody, and at any length. */
const MAX_OUTPUT_BYTES = 64 * 1024

/**
 * Returns the identity of the person as git decides it in this directory, without what the repository says: git in a
 * sandbox reads that itself, also in each repository below. With `ofRepository` it returns what a commit there has.
 * Empty without git, or without a name; a commit then fails with the advice of git. Starts one process, which only reads:
 * git starts no program for it.
 */
export async function gitIdentityIn(
  directory: string,
  env: HostEnvironment,
  { ofRepository = false } = {},
): Promise<GitIdentity> {
  const args = ['config', '--show-scope', '--null', '--get-regexp', KEYS]
  const limits = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES } as const
  // `--global` instead would read only one of the two files of a person.
  const git = findProgram('git', env.path)
  if (git === undefined) return new Map()
  const reading = runProgram(git, args, { env, cwd: directory, encoding: 'latin1', ...limits })
  const { stdout } = await reading.catch(() => ({ stdout: '' }))
  const fields = stdout.split('\0')
  const foundValues = new Map<string, string>()
  // The last value of a name counts.
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [scope, entry = ''] = [fields[at], fields[at + 1]]
    const end = entry.indexOf('\n')
    if (end >= 0 && (ofRepository || scope === 'global')) foundValues.set(entry.slice(0, end), entry.slice(end + 1))
  }
  return foundValues
}

/** Asks once for each directory, and again where nothing was found. */
export function gitIdentities(env: HostEnvironment): (directory: string) => Promise<GitIdentity> {
  const knownIdentities = new Map<string, Promise<GitIdentity>>()
  return async (directory) => {
    const reading = knownIdentities.get(directory) ?? gitIdentityIn(directory, env)
    knownIdentities.set(directory, reading)
    const foundIdentity = await reading
    if (foundIdentity.size === 0) knownIdentities.delete(directory)
    return foundIdentity
  }
}

/**
 * Returns the text of a configuration of the system, below that of the home and of a repository: whatever those say takes
 * precedence. Undefined without an identity.
 */
export function configOfIdentity(identity: GitIdentity): Buffer | undefined {
  if (identity.size === 0) return undefined
  const settings = Array.from(identity, ([key, value]) => {
    const [section, name] = key.split('.')
    return `[${section}]\n\t${name} = "${value.replaceAll(/[\\"\n]/g, escapeCharacter)}"\n`
  })
  return Buffer.from(`[include]\n\tpath = ${SYSTEM_CONFIG}\n${settings.join('')}`, 'latin1')
}

/** What it replaces. Git skips it where it does not exist. */
const SYSTEM_CONFIG = '/etc/gitconfig'

const escapeCharacter = (character: string): string => (character === '\n' ? String.raw`\n` : `\\${character}`)

/** Variables of the person's own environment, which take precedence over each configuration, as they do in git. */
export const identityVariables = (
  own: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(VARIABLES.flatMap((name) => (own[name] ? [[name, own[name]]] : [])))

const VARIABLES = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL']
