/** The name under which a person commits, so that commits of agents on the person's own machine have it. */
import type { HostEnvironment } from '../lib/start-process.ts'
import { outputNow } from '../lib/start-process.ts'

/** Variables of git(1). */
export type GitIdentity = Readonly<Partial<Record<(typeof GIT_IDENTITY)[number], string>>>

const GIT_IDENTITY = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL'] as const

const TIMEOUT_MS = 2000

/** A repository can name anybody. With a variable of 128 KiB, Linux starts no program (E2BIG). */
const MAX_CHARS = 1000

/**
 * Returns a function that asks git, as it would decide in this directory: a sandbox has another home, and thus no
 * `~/.gitconfig`. Variables of the person's own environment take precedence, as they do in git. Without git, or without a
 * name, it returns nothing, and a commit fails with the advice of git.
 */
export function gitIdentities(
  env: HostEnvironment,
  own: Readonly<Record<string, string | undefined>>,
): (directory: string) => GitIdentity {
  const known = new Map<string, GitIdentity>()
  return (directory) => {
    const found = known.get(directory) ?? { ...configured(env, directory), ...given(own) }
    known.set(directory, found)
    return found
  }
}

const given = (own: Readonly<Record<string, string | undefined>>): GitIdentity =>
  Object.fromEntries(GIT_IDENTITY.flatMap((name) => (own[name] ? [[name, own[name]]] : [])))

/** One process, which only reads: git starts no program for it. */
function configured(env: HostEnvironment, directory: string): GitIdentity {
  const args = ['config', '--null', '--get-regexp', String.raw`^(user|author|committer)\.(name|email)$`]
  const output = outputNow('git', args, { env, cwd: directory, timeout: TIMEOUT_MS }) ?? ''
  // The last value of a name counts.
  const values = new Map(output.split('\0').map((entry) => splitAt(entry, entry.indexOf('\n'))))
  const valueOf = (who: string, what: string) => values.get(`${who}.${what}`) ?? values.get(`user.${what}`)
  const entries = GIT_IDENTITY.flatMap((name) => {
    const [, who = '', what = ''] = name.toLowerCase().split('_')
    const value = valueOf(who, what)
    return value && value.length <= MAX_CHARS ? [[name, value]] : []
  })
  return Object.fromEntries(entries)
}

const splitAt = (entry: string, at: number): [string, string] =>
  at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)]
