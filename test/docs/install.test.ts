/** docs/install.md: what of it can be checked without starting anything. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { findCommand } from '../../scripts/provide.mjs'
import { readArguments } from '../../src/cli/command-line/read-arguments.ts'
import { VARIABLES } from '../../src/config/variables.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFile(join(ROOT, path), 'utf8')
const doc = await read('docs/install.md')
const unit = await read('examples/deploy/agent-server.service')

const ANALYZE = findCommand(['systemd-analyze'])

test.runIf(ANALYZE !== undefined)('systemd accepts the unit', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-unit-'))
  const path = join(directory, 'agent-server.service')
  await writeFile(path, unit.replace('/usr/local/bin/agent-server', '/bin/true'))
  const { stdout, stderr } = await promisify(execFile)(ANALYZE!, ['verify', '--man=no', path])
  // Of an unknown setting it only warns.
  expect(stdout + stderr).toBe('')
  await rm(directory, { recursive: true })
})

test('the unit starts the server with options and variables that exist', () => {
  const [, args] = /^ExecStart=\S+ (.*)$/m.exec(unit)!
  expect(readArguments(args!.split(' ')).name).toBe('serve')
  const names = [...unit.matchAll(/^Environment=(\w+?)(?:_FILE)?=/gm)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(2)
  for (const name of names) expect(Object.keys(VARIABLES)).toContain(name)
})

test('each listed archive is made by the release', async () => {
  const release = await read('scripts/release.ts')
  const listed = [...doc.matchAll(/`agent-server-<version>-(\w+)-(\w+)\.tar\.gz`/g)]
  const made = [...release.matchAll(/platform: '(\w+)',\s+arch: '(\w+)'/g)]
  expect(listed.length).toBeGreaterThan(2)
  expect(listed.map(([, ...names]) => names)).toEqual(made.map(([, ...names]) => names))
})

describe('the image', async () => {
  const dockerfile = (await read('Dockerfile')).replaceAll('\\\n', ' ')
  const lines = dockerfile.split('\n').filter((line) => /^[A-Z]/.test(line))
  const stages = lines.flatMap((line) => /^FROM (\S+)(?: AS (\S+))?$/.exec(line) ?? []).filter((_, at) => at % 3 === 2)
  const tag = `agent-server:${manifest.version.replace(/\.\d+$/, '')}`

  test('copies only from stages that exist, and is never left with root as its user', () => {
    const copied = [...dockerfile.matchAll(/--from=(\S+)/g)].map(([, stage]) => stage)
    expect(copied.length).toBeGreaterThan(2)
    for (const stage of copied) expect(stages).toContain(stage)
    const users = [...dockerfile.matchAll(/^(?:FROM .* AS (\S+)|USER (\S+))/gm)].map(([, stage, user]) => stage ?? user)
    expect(users).toEqual(['build', 'server', 'agent', 'tools', 'root', 'agent'])
    expect(lines.at(-1)).toBe('FROM server')
  })

  test('has the tags and targets that the page builds and extends', () => {
    const built = [...doc.matchAll(/docker build -t (\S+)(?: --target (\S+))? \.$/gm)].map(([, ...names]) => names)
    expect(built).toEqual([
      [tag, undefined],
      [`${tag}-tools`, 'tools'],
    ])
    expect(stages).toContain('tools')
    expect(doc).toContain(`FROM ${tag}-tools\nUSER root\n`)
  })

  test('is what the compose file starts, with settings, a volume, a port and a user that exist', async () => {
    const { services, secrets, volumes } = parse(await read('examples/deploy/compose.yaml')) as Compose
    const service = services['agent-server']!
    expect(service.image).toBe(tag)
    expect(stages).toContain(service.build.target)
    for (const name of Object.keys(service.environment))
      expect(Object.keys(VARIABLES)).toContain(name.replace(/_FILE$/, ''))
    for (const name of service.secrets) {
      expect(Object.keys(secrets)).toContain(name)
      expect(Object.values(service.environment)).toContain(`/run/secrets/${name}`)
    }
    const [volume, path] = service.volumes[0]!.split(':')
    expect(Object.keys(volumes)).toContain(volume)
    expect(lines).toContain(`VOLUME ${path}`)
    expect(lines).toContain(`EXPOSE ${service.ports[0]!.split(':').at(-1)}`)
    expect(dockerfile).toContain(`--uid ${service.user.split(':')[0]} `)
  })

  test('keeps the profiles of Docker in the compose file, unless it must have the sandbox instead', async () => {
    const text = await read('examples/deploy/compose.yaml')
    const of = (compose: string) => (parse(compose) as Compose).services['agent-server']!
    expect(of(text).security_opt).toEqual(['no-new-privileges=true'])
    expect(of(text).environment).not.toHaveProperty('OPENHANDS_ISOLATION')

    const alternative = of(text.replaceAll(/^( +)# (?=- \w+=unconfined$|OPENHANDS_ISOLATION: )/gm, '$1'))
    const instead = ['seccomp=unconfined', 'apparmor=unconfined', 'systempaths=unconfined']
    expect(alternative.security_opt).toEqual(['no-new-privileges=true', ...instead])
    // Without the sandbox, the container would have no protection: the server must not start.
    expect(alternative.environment).toHaveProperty('OPENHANDS_ISOLATION', 'bubblewrap')
    const page = await read('docs/isolation.md')
    for (const option of instead) expect(page).toContain(`--security-opt ${option}`)
  })
})

type Compose = {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, unknown>>
  readonly volumes: Readonly<Record<string, unknown>>
}

type Service = {
  readonly image: string
  readonly build: { readonly target: string }
  readonly environment: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
  readonly volumes: readonly string[]
  readonly ports: readonly string[]
  readonly user: string
  readonly security_opt: readonly string[]
}
