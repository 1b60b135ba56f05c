/** The secrets in files of a person's home that agents may read. The only file that knows which files have some. */
import { statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { readSmallFileSync, whyUnreadable } from '../files/small-file.ts'
import { codeOf } from '../lib/error-code.ts'
import { tokensInText, type FoundTokens } from '../security/tokens-in-text.ts'

/** The files in the home in which programs keep their credentials. */
const FILES = `
  .npmrc .yarnrc.yml .netrc .git-credentials .config/git/credentials .config/gh/hosts.yml .config/glab-cli/config.yml .config/hub
  .pypirc .pip/pip.conf .config/pip/pip.conf .aws/credentials .aws/config .boto .s3cfg
  .config/gcloud/application_default_credentials.json .docker/config.json .config/containers/auth.json .kube/config
  .config/helm/registry/config.json .vault-token .terraformrc .terraform.d/credentials.tfrc.json .cargo/credentials.toml
  .cargo/credentials .cargo/config.toml .gem/credentials .bundle/config .composer/auth.json .config/composer/auth.json
  .m2/settings.xml .gradle/gradle.properties .nuget/NuGet/NuGet.Config .pgpass .my.cnf .config/rclone/rclone.conf
  .ssh/id_rsa .ssh/id_ecdsa .ssh/id_ed25519
`
  .trim()
  .split(/\s+/)

/** How many values of a file stay secret, with those that it has had: a process may have read them. More slow all texts down. */
const MAX_VALUES = 1024

type Readable = { readonly at: string; readonly real: string }

/** The secrets for one conversation. It reads a file again when it has changed. */
export class HomeSecrets {
  readonly #home: string
  /** The key is the path. */
  readonly #versions = new Map<string, string>()
  /** The key is the path, then the name that a placeholder has: several paths may have one name. */
  readonly #values = new Map<string, Map<string, readonly string[]>>()

  /** `home` has no link in its path. */
  constructor(home: string) {
    this.#home = home
  }

  /** Calls `hide` for each file that is new or has changed, with all values that files of this name have had. */
  refresh(readable: readonly Readable[], hide: (name: string, ...values: readonly string[]) => void): void {
    for (const { path, name } of readable.flatMap((each) => filesIn(this.#home, each))) {
      const version = versionOf(path)
      if (version === undefined || version === this.#versions.get(path)) continue
      this.#versions.set(path, version)
      const ofName = this.#values.get(name) ?? new Map<string, readonly string[]>()
      const values = [...new Set([...tokensNow(path), ...(ofName.get(path) ?? [])])].slice(0, MAX_VALUES)
      this.#values.set(name, ofName.set(path, values))
      hide(name, ...new Set([...ofName.values()].flat()))
    }
  }
}

/** Says why the secrets in a file cannot all be found, as the end of a sentence that begins with its name. */
export function whyNotSearchable(home: string, readable: Readable): string | undefined {
  for (const { path, name } of filesIn(home, readable)) {
    if (versionOf(path) === undefined) continue
    try {
      if (!tokensIn(path).areAll) return `${name} has more than ${MAX_VALUES} values that may be secret`
    } catch (error) {
      // The agent cannot read a file that this process cannot.
      if (codeOf(error) === undefined) return `${name} cannot be searched for secrets: ${whyUnreadable(error)}`
    }
  }
  return undefined
}

/** The file itself, whatever its name is; of a directory those with a name that is known. */
function filesIn(home: string, { at, real }: Readable): { readonly path: string; readonly name: string }[] {
  const nameOf = (path: string) => `~/${relative(home, path).replaceAll(/[^\w./@-]/g, '_')}`
  const inside = FILES.map((file) => join(home, file)).filter((path) => path.startsWith(at + sep))
  return [
    { path: real, name: nameOf(at) },
    ...inside.map((path) => ({ path: join(real, relative(at, path)), name: nameOf(path) })),
  ]
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

/** Throws as `readSmallFileSync` does. */
const tokensIn = (path: string): FoundTokens => tokensInText(readSmallFileSync(path).toString('utf8'), MAX_VALUES)

/** A file was searchable when it was granted, but its person may have changed it since. */
function tokensNow(path: string): readonly string[] {
  try {
    return tokensIn(path).values
  } catch {
    return []
  }
}
