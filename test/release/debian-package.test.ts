/** The Debian package of the release, installed into an empty root directory, removed and purged. A script stands for the executable. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCommand } from '../../scripts/provide.mjs'
import { DEBIAN_ARCHITECTURES, makeDebianPackage } from '../../scripts/release/debian-package.ts'

const run = promisify(execFile)
const directory = await mkdtemp(join(tmpdir(), 'debian-package-'))
afterAll(() => rm(directory, { recursive: true }))

const TIME = new Date('2026-01-02T03:04:05Z')
const ARCHITECTURE = DEBIAN_ARCHITECTURES[process.arch]!
const LICENSE = join(directory, 'LICENSE-node')
await writeFile(LICENSE, 'Node.js is licensed for use as follows:\n\nAs the authors say.\n')

const PROGRAM = join(directory, 'program')
await writeFile(PROGRAM, '#!/bin/sh\necho runs\n', { mode: 0o700 })

async function make(name: string): Promise<string> {
  const output = join(directory, name)
  await mkdir(output)
  const description = 'A server that hosts agents'
  const form = { version: '0.1.0', architecture: ARCHITECTURE, description, time: TIME, compression: 1 }
  return join(output, makeDebianPackage({ ...form, executable: PROGRAM, nodeLicense: LICENSE, work: output, output }))
}

/** Without the scripts' own root directory: they use DPKG_ROOT, and the programs of this machine. */
const ROOT = join(directory, 'root')
const OPTIONS = [`--root=${ROOT}`, '--force-script-chrootless', '--force-depends', '--log=/dev/null']
/** Where programs of administrators are not in the search path, dpkg refuses to work. */
const PATH = `${process.env['PATH']}:/usr/local/sbin:/usr/sbin:/sbin`
const env = { ...process.env, PATH, DPKG_ROOT: ROOT, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
/** Nobody but root may give a file to root. */
const asRoot = (...command: string[]) => run('unshare', ['--user', '--map-root-user', ...command], { env })
const dpkg = (...args: string[]) => asRoot('dpkg', ...OPTIONS, ...args)

const KEY = join(ROOT, 'etc/agent-server/master-key')
const DATA = join(ROOT, 'var/lib/agent-server/conversations')

const isDebian = findCommand(['dpkg']) !== undefined
const made = isDebian ? make('package') : ''

beforeAll(async () => {
  if (!isDebian) return
  for (const path of ['etc', 'var/cache/debconf', 'var/lib/dpkg/info', 'var/lib/dpkg/updates'])
    await mkdir(join(ROOT, path), { recursive: true })
  await writeFile(join(ROOT, 'var/lib/dpkg/status'), '')
  await copyFile('/etc/debconf.conf', join(ROOT, 'etc/debconf.conf'))
})

test.runIf(isDebian)('the same executable and commit give the same package, whatever the umask is', async () => {
  const umask = process.umask(0o077)
  try {
    expect((await readFile(await made)).equals(await readFile(await make('second')))).toBe(true)
  } finally {
    process.umask(umask)
  }
})

const LINTIAN = findCommand(['lintian'])

test.runIf(isDebian && LINTIAN !== undefined)('lintian has no errors and warnings about a package', async () => {
  const env = { ...process.env, TMPDIR: directory }
  const { stdout } = await run(LINTIAN!, ['--allow-root', '--fail-on', 'error,warning', await made], { env })
  expect(stdout).toBe('')
})

test.runIf(isDebian)(
  'a package keeps its key, settings and data, and deletes them at a purge that was answered with yes',
  async () => {
    const file = await made
    await dpkg('--install', file)

    const program = join(ROOT, 'usr/bin/agent-server')
    expect((await run(program)).stdout).toBe('runs\n')
    const key = await readFile(KEY, 'utf8')
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    expect((await stat(KEY)).mode & 0o777).toBe(0o600)
    expect(await readFile(join(ROOT, 'etc/passwd'), 'utf8')).toMatch(/^agent-server:/m)
    expect(await readFile(join(ROOT, 'usr/lib/systemd/system/agent-server.service'), 'utf8')).toContain(
      'ExecStart=/usr/bin/agent-server serve',
    )
    // Nothing starts it by itself.
    expect(existsSync(join(ROOT, 'etc/systemd/system/multi-user.target.wants'))).toBe(false)

    await mkdir(DATA, { recursive: true })
    const settings = join(ROOT, 'etc/agent-server/environment')
    await writeFile(settings, 'LLM_MODEL=of-this-machine\n')
    await dpkg('--install', file)
    expect(await readFile(KEY, 'utf8')).toBe(key)
    await dpkg('--remove', 'agent-server')
    expect(existsSync(program)).toBe(false)
    expect(await readFile(settings, 'utf8')).toBe('LLM_MODEL=of-this-machine\n')

    await dpkg('--purge', 'agent-server')
    expect(existsSync(settings)).toBe(false)
    expect(existsSync(DATA)).toBe(true)
    expect(await readFile(KEY, 'utf8')).toBe(key)

    await dpkg('--install', file)
    expect(await readFile(KEY, 'utf8')).toBe(key)
    const answer = 'agent-server agent-server/purge-data boolean true'
    await asRoot('sh', '-c', `echo '${answer}' | debconf-set-selections`)
    await dpkg('--purge', 'agent-server')
    expect(existsSync(DATA)).toBe(false)
    expect(existsSync(join(ROOT, 'etc/agent-server'))).toBe(false)
  },
)
