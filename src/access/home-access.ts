/**
 * What conversations may use of the home of the person whose commands opened them: a file for each conversation, in
 * `home-access` in the data directory. Only programs of the same user can write it, and no agent in a sandbox. It counts
 * as long as the command runs that wrote it, whichever process of the person runs the agents.
 */
import { readFileSync, statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { makeDirectories } from '../files/make-directories.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { codeOf } from '../lib/error-code.ts'

export type HomeAccess = {
  /** The real path of the home. */
  readonly home: string
  /** Files and directories to read: the name that programs use, and the real path, both absolute. */
  readonly readable: readonly { readonly at: string; readonly real: string }[]
  /** The real path of the socket of the person's ssh agent. */
  readonly sshAgent?: string | undefined
  /** Whether it shares the caches of package managers with others in its directory. */
  readonly packageCache?: boolean | undefined
}

const Grant = z.object({
  pid: z.number(),
  start: z.string(),
  home: z.string(),
  readable: z.array(z.object({ at: z.string(), real: z.string() })),
  sshAgent: z.string().optional(),
  packageCache: z.boolean().optional(),
})
type Grant = HomeAccess & Pick<z.infer<typeof Grant>, 'pid' | 'start'>

const directoryIn = (dataDir: string): string => join(dataDir, 'home-access')
const pathOf = (dataDir: string, conversationId: string): string => join(directoryIn(dataDir), `${conversationId}.json`)

/** What one command grants to the conversations that it opens, until it is disposed. */
export class HomeGrants implements AsyncDisposable {
  readonly #dataDir: string
  readonly #access: HomeAccess | undefined
  readonly #granted = new Set<string>()

  constructor(dataDir: string, access: HomeAccess | undefined) {
    this.#dataDir = dataDir
    this.#access = access
  }

  /** Replaces what another command has granted to it; without access it takes that away. */
  async open(conversationId: string): Promise<void> {
    const path = pathOf(this.#dataDir, conversationId)
    if (!this.#access) return await rm(path, { force: true })
    await makeDirectories(directoryIn(this.#dataDir), 0o700)
    await this.#removeLeft()
    const grant: Grant = { pid: process.pid, start: startOf(process.pid) ?? '', ...this.#access }
    await replaceFile(path, JSON.stringify(grant), { durable: false })
    this.#granted.add(conversationId)
  }

  /** Another command may have opened them, too: what that one has granted stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.#granted) {
      const path = pathOf(this.#dataDir, id)
      if (read(path)?.pid === process.pid) await rm(path, { force: true })
    }
  }

  /** Removes the files of commands that were killed. */
  async #removeLeft(): Promise<void> {
    const directory = directoryIn(this.#dataDir)
    const paths = (await readdir(directory)).map((name) => join(directory, name))
    for (const path of paths) {
      const grant = path.endsWith('.json') ? read(path) : undefined
      if (grant && !isRunning(grant)) await rm(path, { force: true })
    }
  }
}

/** Returns a function that returns what a conversation may use now. It reads a file only if it has changed. */
export function homeAccessIn(dataDir: string): (conversationId: string) => HomeAccess | undefined {
  const knownGrants = new Map<string, { readonly version: string; readonly grant: Grant | undefined }>()
  return (id) => {
    const path = pathOf(dataDir, id)
    const stats = statSync(path, { throwIfNoEntry: false, bigint: true })
    if (!stats) {
      knownGrants.delete(id)
      return undefined
    }
    const version = `${stats.ino} ${stats.size} ${stats.mtimeNs}`
    let knownGrant = knownGrants.get(id)
    if (knownGrant?.version !== version) knownGrants.set(id, (knownGrant = { version, grant: read(path) }))
    return knownGrant.grant && isRunning(knownGrant.grant) ? knownGrant.grant : undefined
  }
}

/** Undefined if it was removed meanwhile, or another version has written it. */
function read(path: string): Grant | undefined {
  try {
    return Grant.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Another process may have the number by now. */
const isRunning = ({ pid, start }: Grant): boolean => startOf(pid) === start

/**
 * Returns the time when a process has started, in ticks since the start of the machine; see proc_pid_stat(5). Undefined
 * if it has ended, also if its parent has not asked for its exit code yet.
 */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
