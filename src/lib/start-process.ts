/**
 * Starts processes outside of a sandbox, also while no descriptor is free, and says why one could not be started. The
 * only file that does, so that each of them has an environment of the server alone. A variable there can run code as the
 * server (`LD_PRELOAD`, `NODE_OPTIONS`, and others that no list is complete about), so those of clients, projects and
 * agents have no way in. What a program is given is set inside its sandbox, by the last `exec`.
 */
import { execFile, spawn } from 'node:child_process'
import type { ChildProcess, ExecFileOptions, SpawnOptions } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf } from './error-code.ts'

export type { ChildProcess } from 'node:child_process'

/** The options have no `shell`, which would interpret the arguments. */
type Own<Options> = Omit<Options, 'env' | 'shell'> & { readonly env: HostEnvironment }

/**
 * Throws if the process cannot have its pipes. Node returns such a process without any stream, and emits an error on it
 * later, which would end the server if nothing listened. All other failures are thrown or emitted as by `spawn`.
 */
export function startProcess(file: string, args: readonly string[], options: Own<SpawnOptions>): ChildProcess {
  const child = attempt(file, args, options)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types do not know of such a process
  const stdio = child.stdio as ChildProcess['stdio'] | undefined
  if (stdio) return child.prependOnceListener('error', (error) => explain(error, file))
  child.on('error', () => {}) // thrown here instead
  throw explain(Object.assign(new Error(), { code: 'EMFILE', syscall: 'spawn' }), file)
}

/** Ends all processes of the group that this one leads, by `detached`: some may outlive it, and have its output. */
export function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of its processes have ended.
  }
}

const execute = promisify(execFile)

/** Runs a program to its end, and resolves with its output. Rejects as the promise of `execFile` does. */
export async function runProgram(
  file: string,
  args: readonly string[],
  {
    env,
    encoding = 'utf8',
    ...options
  }: Own<Omit<ExecFileOptions, 'encoding'>> & { readonly encoding?: BufferEncoding },
): Promise<{ stdout: string; stderr: string }> {
  try {
    return await execute(file, args, { ...options, encoding, env: env.variables })
  } catch (error) {
    throw error instanceof Error ? explain(error, file) : error
  }
}

/**
 * Runs a program to its end, and resolves with its output, whatever its exit code is. Rejects if it could not be started,
 * took longer than `timeout` milliseconds, or wrote more than `maxBuffer` bytes.
 */
export async function outputOf(
  file: string,
  args: readonly string[],
  { env, ...bounds }: { readonly env: HostEnvironment; readonly timeout: number; readonly maxBuffer: number },
): Promise<{ stdout: string; stderr: string }> {
  // Loaded on first use: a server starts faster without it, and few have a disk limit.
  const { execa } = await import('execa')
  const fixedOptions = { extendEnv: false, killSignal: 'SIGKILL', reject: false, stripFinalNewline: false } as const
  const result = await execa(file, args, { ...fixedOptions, ...bounds, env: env.variables })
  if (result.exitCode === undefined) throw result
  return result
}

/** Returns true for the error of a process that could not be started because the machine lacks something. */
export function isStartRefused(error: unknown): boolean {
  const syscall = error instanceof Error && 'syscall' in error ? String(error.syscall) : ''
  return syscall.startsWith('spawn') && (codeOf(error) ?? '') in LACKS
}

function attempt(file: string, args: readonly string[], { env, ...options }: Own<SpawnOptions>): ChildProcess {
  try {
    return spawn(file, args, { ...options, env: env.variables })
  } catch (error) {
    throw error instanceof Error ? explain(error, file) : error
  }
}

/** What the machine lacks, by the code of the system. */
const LACKS: Readonly<Record<string, string>> = {
  EMFILE: 'no file descriptors are free (EMFILE). Try again when fewer files and connections are open.',
  ENFILE: 'the machine has no free file descriptor (ENFILE). Try again when fewer files and connections are open.',
  EAGAIN: 'the limit of processes is reached (EAGAIN). End some of them, or try again later.',
  ENOMEM: 'the memory is used up (ENOMEM). End some processes, or try again later.',
}

function explain(error: Error, file: string): Error {
  const lack = LACKS[codeOf(error) ?? '']
  if (lack !== undefined) error.message = `${file} could not be started: ${lack}`
  return error
}

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

/** It has no directory that agents can write to, unlike the search path of shells. */
const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/run/current-system/profile/bin'

/**
 * Leaves out entries that are relative, or empty: programs of the current directory, which agents can write to, have no
 * name.
 */
function withSearchPath(variables: Readonly<Record<string, string>>): Record<string, string> {
  const directories = variables['PATH']?.split(':').filter((directory) => isAbsolute(directory)) ?? []
  return { ...variables, PATH: directories.length > 0 ? directories.join(':') : DEFAULT_PATH }
}

const MARK_PREFIX = 'AGENT_SERVER_'

/** The environment of such a process: made of the server's own by an allow-list, or of constants. */
export class HostEnvironment {
  /** The environment of programs of the system that need nothing of the server. */
  static readonly plain = new HostEnvironment({ PATH: SYSTEM_PATH })

  /** The environment of git in a repository of the server: it reads no configuration but that of the repository. */
  static readonly ownGit = new HostEnvironment({
    PATH: SYSTEM_PATH,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
  })

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
    const passedVariables = Object.entries(server).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && (PASSED_ON.has(entry[0]) || entry[0].startsWith('LC_')),
    )
    return new HostEnvironment({ ...withSearchPath(Object.fromEntries(passedVariables)), ...UNATTENDED })
  }

  /**
   * All of a person's own environment, for a program that the person has chosen, such as an editor. Never for an agent. The
   * search path has absolute entries only, here as well, and none of the project: npx and virtual environments put those first,
   * and agents can write there.
   */
  static ofPerson(own: Readonly<Record<string, string | undefined>>): HostEnvironment {
    const set = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const directories = own['PATH']?.split(':') ?? []
    const path = directories.filter((directory) => !isOfPackage(directory) && !isOfProject(directory)).join(':')
    return new HostEnvironment(withSearchPath({ ...Object.fromEntries(set), PATH: path }))
  }

  /** Returns the environment of a Node with these options, which must be literal text in the source code. */
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

/** The directories that the process was in before. */
const formerDirectories = new Set<string>()

/** Changes the current directory. The one that the process leaves is still that of the project. */
export function leaveDirectory(to: string): void {
  formerDirectories.add(process.cwd())
  process.chdir(to)
}

/**
 * Returns true if it is below the directory of the process, now or before. A directory with the home in it does not
 * count.
 */
function isOfProject(directory: string): boolean {
  const projects = [process.cwd(), ...formerDirectories].filter((project) => !isInside(homedir(), project))
  return projects.some((project) => isInside(directory, project))
}

const isInside = (path: string, directory: string): boolean =>
  `${path}/`.startsWith(directory === '/' ? '/' : `${directory}/`)

const isOfPackage = (directory: string): boolean => /\/node_modules(\/|$)/.test(directory)

/** Ignores program directories of packages and projects (npm puts those first on PATH): agents can write there. */
export function findProgram(name: string, path: string): string | undefined {
  const projects = [process.cwd(), ...formerDirectories].filter((project) => project !== '/')
  const isIgnored = (directory: string) =>
    isOfPackage(directory) || projects.some((project) => isInside(directory, project))
  const directories = path.split(':').filter((directory) => isAbsolute(directory) && !isIgnored(directory))
  const candidates = directories.map((directory) => join(directory, name))
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
