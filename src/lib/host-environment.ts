/**
 * The environment of the processes that the server starts outside of a sandbox. A variable there can run code as the
 * server (`LD_PRELOAD`, `NODE_OPTIONS`, and others that no list is complete about), so those of clients, projects and
 * agents have no way in: each environment is either made of the server's own by an allow-list, or written down here or
 * in the source code of its caller. What a program is given is set inside its sandbox, by the last `exec`.
 */
import { isAbsolute } from 'node:path'

const CERTIFICATES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']

const PASSED_ON = new Set(
  ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR'].concat(
    CERTIFICATES,
    ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ),
)

/** Disables paging, prompts and drawing, because there is no terminal. */
const UNATTENDED = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: '',
  GIT_TERMINAL_PROMPT: '0',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Unlike the search path of shells, it has no directory that agents can write to. */
const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/run/current-system/profile/bin'

const MARK_PREFIX = 'AGENT_SERVER_'

export class HostEnvironment {
  /** For programs of the system that need nothing of the server. */
  static readonly plain = new HostEnvironment({ PATH: SYSTEM_PATH })

  // A private field: TypeScript accepts no other object in its place.
  readonly #variables: Readonly<Record<string, string>>

  private constructor(variables: Readonly<Record<string, string>>) {
    this.#variables = variables
  }

  /**
   * The environment that shells inherit, from the server's own. It contains no key of the server, and nothing that the
   * server was given for itself.
   */
  static from(server: Readonly<Record<string, string | undefined>>): HostEnvironment {
    const passed = Object.entries(server).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && (PASSED_ON.has(entry[0]) || entry[0].startsWith('LC_')),
    )
    return new HostEnvironment({ PATH: DEFAULT_PATH, ...Object.fromEntries(passed), ...UNATTENDED })
  }

  /** For a Node with these options, which must be literal text in the source code. */
  static ofNode<const T extends string>(options: T & (string extends T ? never : unknown)): HostEnvironment {
    return new HostEnvironment({ NODE_OPTIONS: options })
  }

  /** Adds the marks by which the server finds its processes again. Throws for any other name. */
  marked(marks: Readonly<Record<string, string>>): HostEnvironment {
    const other = Object.keys(marks).find((name) => !name.startsWith(MARK_PREFIX))
    if (other !== undefined) throw new Error(`${other} is not a mark. Set other variables inside the sandbox.`)
    return new HostEnvironment({ ...this.#variables, ...marks })
  }

  get variables(): Readonly<Record<string, string>> {
    return this.#variables
  }

  /** The search path of programs. */
  get path(): string {
    return this.#variables['PATH'] ?? DEFAULT_PATH
  }

  /** The files that it names, without which programs fail. */
  get namedPaths(): string[] {
    return CERTIFICATES.flatMap((name) => this.#variables[name]?.split(':') ?? []).filter(isAbsolute)
  }
}
