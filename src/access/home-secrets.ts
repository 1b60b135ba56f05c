/** The secrets in files of a person's home that agents may read. The only file that knows which files have some. */
import { statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { readSmallFileSync } from '../files/small-file.ts'
import { tokensInText } from '../security/tokens-in-text.ts'

/** Where programs keep their credentials, in the home. */
const FILES = `
  .npmrc .yarnrc.yml .netrc .git-credentials .config/git/credentials .config/gh/hosts.yml .config/glab-cli/config.yml .pypirc
  .pip/pip.conf .config/pip/pip.conf .aws/credentials .aws/config .docker/config.json .cargo/credentials.toml
  .cargo/credentials .cargo/config.toml .gem/credentials .bundle/config .composer/auth.json .config/composer/auth.json
  .ssh/id_rsa .ssh/id_ecdsa .ssh/id_ed25519
`
  .trim()
  .split(/\s+/)

/** Values that a file has had stay secret: a process may have read them. */
const MAX_VALUES = 256

type Readable = { readonly at: string; readonly real: string }

type KnownFile = { readonly version: string; readonly values: readonly string[] }

/** For one conversation. It reads a file again when it has changed. */
export class HomeSecrets {
  readonly #home: string
  readonly #known = new Map<string, KnownFile>()

  /** `home` has no link in its path. */
  constructor(home: string) {
    this.#home = home
  }

  /** Calls `hide` for each file that is new or has changed, with all values that it has had. */
  refresh(readable: readonly Readable[], hide: (name: string, ...values: readonly string[]) => void): void {
    for (const { path, name } of readable.flatMap((each) => this.#filesIn(each))) {
      const known = this.#known.get(path)
      const version = versionOf(path)
      if (version === undefined || version === known?.version) continue
      const values = [...new Set([...tokensIn(path), ...(known?.values ?? [])])].slice(0, MAX_VALUES)
      this.#known.set(path, { version, values })
      hide(name, ...values)
    }
  }

  /** The file itself, whatever its name is; of a directory those with a name that is known. */
  #filesIn({ at, real }: Readable): { readonly path: string; readonly name: string }[] {
    const nameOf = (path: string) => `~/${relative(this.#home, path).replaceAll(/[^\w./@-]/g, '_')}`
    const inside = FILES.map((file) => join(this.#home, file)).filter((path) => path.startsWith(at + sep))
    return [
      { path: real, name: nameOf(at) },
      ...inside.map((path) => ({ path: join(real, relative(at, path)), name: nameOf(path) })),
    ]
  }
}

/** Undefined if it is not a file. */
function versionOf(path: string): string | undefined {
  const stats = statIfAny(path)
  return stats?.isFile() ? `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}` : undefined
}

function statIfAny(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false, bigint: true })
  } catch {
    return undefined // a directory that may not be entered: the agent cannot enter it, either
  }
}

/** A file that cannot be read, or is too large for credentials, has none: the agent cannot read the former, either. */
function tokensIn(path: string): string[] {
  try {
    return tokensInText(readSmallFileSync(path).toString('utf8'))
  } catch {
    return []
  }
}
