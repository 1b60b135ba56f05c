/** Looks at what agents need of this machine: a sandbox, programs, and the port of the server. */
import { connect } from 'node:net'
import type { Config } from '../../config/config.ts'
import { findProgram, HostEnvironment, runProgram } from '../../lib/start-process.ts'
import { gitIdentityIn, identityVariables } from '../../shell/git-identity.ts'
import { findSandbox } from '../../wiring/sandbox.ts'
import type { Finding } from './check.ts'
import { good, weak } from './check.ts'

const PROGRAM_TIMEOUT_MS = 5000
const ANSWER_TIMEOUT_MS = 3000

/** Makes an empty sandbox, as the server does when it starts. */
export async function checkSandbox(config: Config): Promise<Finding> {
  const { missing, close } = await findSandbox(config)
  close?.()
  if (missing === undefined) return good('bubblewrap: commands of agents write only in their own directory')
  const fix =
    process.platform === 'linux'
      ? 'Install it (apt install bubblewrap); docs/isolation.md says what it needs in a container.'
      : 'Run agents in a Linux container or virtual machine, or approve what they do (--permission-mode default).'
  return weak(`none, so commands have the rights of ${userName()}: ${missing}`, fix)
}

const userName = (): string => (process.getuid?.() === 0 ? 'root' : 'the user')

/** `directory`: where a person works, because git can have another identity there. */
export async function checkGit({ environment }: Config, directory: string): Promise<Finding> {
  const env = HostEnvironment.from(environment)
  const foundProgram = findProgram('git', env.path)
  const readVersion = (program: string) => runProgram(program, ['--version'], { env, timeout: PROGRAM_TIMEOUT_MS })
  const version = foundProgram && (await readVersion(foundProgram).catch(() => undefined))?.stdout
  if (!version) return weak('not installed', 'Install it (apt install git), if agents are to commit.')
  const configuredIdentity = await gitIdentityIn(directory, env, { ofRepository: true })
  const { GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL } = identityVariables(environment)
  const of = (key: string) => {
    const value = configuredIdentity.get(`author.${key}`) ?? configuredIdentity.get(`user.${key}`)
    return value && Buffer.from(value, 'latin1').toString('utf8')
  }
  const [name, email] = [GIT_AUTHOR_NAME ?? of('name'), GIT_AUTHOR_EMAIL ?? of('email')]
  if (name !== undefined && email !== undefined) return good(`${version.trim()}; agents commit as ${name} <${email}>`)
  return weak(
    `${version.trim()} has no name or address for commits`,
    'Run: git config --global user.name NAME; git config --global user.email ADDRESS',
  )
}

export function checkRipgrep({ environment }: Config): Finding {
  const path = findProgram('rg', HostEnvironment.from(environment).path)
  if (path !== undefined) return good(path)
  return weak('not installed, so searches in many files are slower', 'Install it (apt install ripgrep).')
}

/** A program that listens there is asked whether it is a server of this kind. */
export async function checkPort({ host, port }: Config): Promise<Finding> {
  const name = `${host}:${port}`
  if (port === 0 || !(await isListenedOn(host, port))) return good(`${name} is free for agent-server serve`)
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/alive`
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS), redirect: 'manual' })
    .then((response) => response.json())
    .catch(() => undefined)
  if (JSON.stringify(answer) === '{"status":"ok"}') return good(`${name} is that of a server that runs`)
  return weak(`${name} is used by another program`, 'Choose another one: agent-server serve --port PORT')
}

async function isListenedOn(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host: host === '0.0.0.0' || host === '::' ? 'localhost' : host, port })
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => resolve(false))
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return await promise.finally(() => socket.destroy())
}
