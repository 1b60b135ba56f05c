/** Gives conversations what the person lets them use of the home: their shells, their tools, and their redaction. */
import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { HomeAccess } from '../access/home-access.ts'
import { homeAccessIn } from '../access/home-access.ts'
import type { FileRules } from '../files/jail/file-gate.ts'
import type { ConversationLimits } from '../limits/conversation-limits.ts'
import type { DeniedFiles } from '../policy/denied-files.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import { configOfIdentity, identityVariables, type GitIdentity } from '../shell/git-identity.ts'
import { SSH_AGENT_IN_SANDBOX } from '../sandbox/mounts.ts'
import { HomeSecrets } from '../access/home-secrets.ts'
import type { Redactor } from '../security/redaction/redactor.ts'

type Of = { readonly stateDirectory: string }

/** Serves the server in a program of the person. A server for others has none. */
export class HomeViews {
  readonly #accessOf: (conversationId: string) => HomeAccess | undefined
  readonly #caches: string

  readonly #identityOf: (directory: string) => Promise<GitIdentity>
  readonly #ownIdentity: Readonly<Record<string, string>>

  /** `dataDir` has no link in its path. `environment` is that of the person. */
  constructor(
    dataDir: string,
    identityOf: (directory: string) => Promise<GitIdentity>,
    environment: Readonly<Record<string, string | undefined>>,
  ) {
    this.#accessOf = homeAccessIn(dataDir)
    this.#identityOf = identityOf
    this.#ownIdentity = identityVariables(environment)
    this.#caches = join(dataDir, 'package-cache')
  }

  /** Each shell sees what is granted when it starts. */
  launcherFor(
    conversationId: string,
    launcher: ShellLauncher,
    limits: Pick<ConversationLimits, 'quota'>,
  ): ShellLauncher {
    const isHidden = launcher.isolation !== 'none'
    const launch: ShellLauncher['launch'] = async (argv, options) => {
      const access = this.#accessOf(conversationId)
      // A conversation could otherwise give data to one with an open network, and would have more room than its limit.
      const isShared = access?.packageCache === true && options.network.mode === 'open' && !limits.quota
      const packageCache = isShared ? this.#cacheOf(options.workdir) : undefined
      const home = access && { ...access, packageCache }
      const gitConfig = isHidden ? configOfIdentity(await this.#identityOf(options.workdir)) : undefined
      return await launcher.launch(argv, { ...options, home, gitConfig })
    }
    return { ...launcher, launch }
  }

  /**
   * A conversation that writes to a cache decides what code others install from it. Conversations in one directory can change each
   * other's code anyway; in another one, an agent that was misled changes nothing.
   */
  #cacheOf(workdir: string): string {
    return join(this.#caches, createHash('sha256').update(workdir).digest('hex').slice(0, 32))
  }

  /** The variables of the commands. Without a sandbox they reach the socket itself. */
  variablesFor(conversationId: string, { isolation }: ShellLauncher): Readonly<Record<string, string>> {
    const sshAgent = this.#accessOf(conversationId)?.sshAgent
    if (sshAgent === undefined) return this.#ownIdentity
    return { ...this.#ownIdentity, SSH_AUTH_SOCK: isolation === 'none' ? sshAgent : SSH_AGENT_IN_SANDBOX }
  }

  /** Tools for files read what the shells of the conversation can. */
  shownTo({ stateDirectory }: Of): FileRules['shown'] {
    return this.#accessOf(basename(stateDirectory))?.readable.map(({ real }) => real)
  }

  /** A deny rule about the name of a shown file also holds for the file that a link with this name leads to. */
  deniedWithin({ stateDirectory }: Of, deniedFiles: DeniedFiles | undefined): DeniedFiles | undefined {
    const linkedPaths = this.#accessOf(basename(stateDirectory))?.readable.filter(({ at, real }) => at !== real) ?? []
    if (!deniedFiles || linkedPaths.length === 0) return deniedFiles
    const namesOf = (path: string) =>
      linkedPaths.flatMap(({ at, real }) => (`${path}/`.startsWith(`${real}/`) ? [at + path.slice(real.length)] : []))
    return (path, access) => [path, ...namesOf(path)].some((name) => deniedFiles(name, access))
  }

  /** Returns a function that adds the secrets in readable files, as they are now. It looks at most once while nothing else happens. */
  secretsFor(conversationId: string): (set: Redactor['set']) => void {
    let secrets: HomeSecrets | undefined
    let isFresh = false
    return (set) => {
      if (isFresh) return
      isFresh = true
      setImmediate(() => (isFresh = false))
      const access = this.#accessOf(conversationId)
      if (!access) return
      secrets ??= new HomeSecrets(access.home)
      secrets.refresh(access.readable, set)
    }
  }
}
