/** What the test command does about programs that are missing, on machines that a directory of stand-ins plays. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, constants, copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const SCRIPT = join(import.meta.dirname, '../../scripts/provide.mjs')
const isRoot = process.getuid?.() === 0
const NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']

type Machine = {
  /** Adds an executable to the only directory on PATH. */
  readonly add: (name: string, script?: string, interpreter?: string) => Promise<void>
  readonly replaceByDirectory: (name: string) => Promise<void>
  /** Puts a script in the place of the Node of the npm packages. */
  readonly breakNode: (script: string) => Promise<void>
  readonly provide: (as?: 'root' | 'nobody') => Promise<{ code: number; stdout: string; stderr: string }>
  /** How apt-get was called. */
  readonly installations: () => Promise<string>
}

/** What is run, where everybody may look: the checkout itself may be in /root. */
async function copyCheckout(directory: string): Promise<{ node: string; script: string }> {
  const [scripts, bin] = [join(directory, 'scripts'), join(directory, 'node_modules/.bin')]
  for (const each of [scripts, bin]) await mkdir(each, { recursive: true })
  const [node, script] = [join(bin, 'node'), join(scripts, 'provide.mjs')]
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE)
  await copyFile(SCRIPT, script)
  return { node, script }
}

/** A machine with these commands and no others. */
async function setMachine(...commands: readonly string[]): Promise<Machine> {
  const directory = await mkdtemp(join(tmpdir(), 'provide-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o777)
  const add: Machine['add'] = async (name, script = 'exit 0', interpreter = '/bin/sh') => {
    await writeFile(join(directory, name), `#!${interpreter}\n${script}\n`, { mode: 0o755 })
  }
  await symlink('/usr/bin/env', join(directory, 'env'))
  const checkout = await copyCheckout(join(directory, 'checkout'))
  for (const command of commands) await add(command)
  return {
    add,
    async replaceByDirectory(name) {
      await rm(join(directory, name))
      await mkdir(join(directory, name))
    },
    async breakNode(script) {
      await rename(checkout.node, join(directory, 'the-node'))
      await writeFile(checkout.node, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    },
    async provide(as = 'nobody') {
      const own = join(directory, 'the-node')
      const argv = [existsSync(own) ? own : checkout.node, checkout.script, 'tests']
      const [program, ...args] = as === 'nobody' && isRoot ? [...NOBODY, ...argv] : argv
      const env = { PATH: directory }
      // Found on the PATH of the tests, since the machine's own has only stand-ins.
      const found = program === 'setpriv' ? '/usr/bin/setpriv' : program!
      return await promisify(execFile)(found, args, { env }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
      )
    },
    installations: () => readFile(join(directory, 'calls'), 'utf8'),
  }
}

const ALL = [
  'bash',
  'bwrap',
  'caddy',
  'chromium',
  'curl',
  'diff',
  'fish',
  'git',
  'ip',
  'mount',
  'nginx',
  'ps',
  'python3',
  'rg',
  'script',
  'setpriv',
  'ssh-agent',
  'tar',
  'zsh',
]
const without = (...missing: readonly string[]) => ALL.filter((name) => !missing.includes(name))

/** Installs bubblewrap and ripgrep, and notes how it was called. */
const APT = `cd "\${0%/*}"; echo "$@ ($DEBIAN_FRONTEND)" >> calls
for name in bwrap rg; do printf '#!/bin/sh\\n' > $name; /bin/chmod 755 $name; done`
const SUDO = `[ "$1" = -n ] && shift; "$@"`

test('nothing is said or installed where every program is there', async () => {
  const machine = await setMachine(...ALL)
  expect(await machine.provide()).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('who may not install gets one line with the command that does, and exit code 1', async () => {
  const machine = await setMachine(...without('bwrap', 'rg'))
  await machine.add('apt-get', APT)
  expect(await machine.provide()).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'No test was run: bwrap, rg not found. Run as root: apt-get update && apt-get install -y --no-install-recommends bubblewrap ripgrep\n',
  })
  await machine.add('sudo', 'echo "a password is required" >&2; exit 1')
  expect((await machine.provide()).stderr).toContain('Run: sudo apt-get update && sudo apt-get install -y')
  await expect(machine.installations()).rejects.toThrow('ENOENT')
})

test('the line is for the package manager that there is', async () => {
  const machine = await setMachine(...without('bwrap', 'ps'))
  expect((await machine.provide()).stderr).toBe('No test was run: bwrap, ps not found. Install what provides them.\n')
  await machine.add('dnf')
  expect((await machine.provide()).stderr).toBe(
    'No test was run: bwrap, ps not found. Run as root: dnf install -y bubblewrap procps-ng\n',
  )
})

test.for(isRoot ? (['nobody', 'root'] as const) : (['nobody'] as const))(
  'missing packages are installed without a question: as %s',
  async (user) => {
    const machine = await setMachine(...without('bwrap', 'rg'))
    await machine.add('apt-get', APT)
    if (user === 'nobody') await machine.add('sudo', SUDO)
    const { code, stdout, stderr } = await machine.provide(user)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe('Installing Debian packages that are missing: bubblewrap ripgrep\n')
    expect(await machine.installations()).toBe(
      'update (noninteractive)\ninstall -y --no-install-recommends bubblewrap ripgrep (noninteractive)\n',
    )
  },
)

test('an installation that fails shows why, and no test is run', async () => {
  const machine = await setMachine(...without('git'))
  await machine.add('apt-get', 'echo "no network" >&2; exit 100')
  await machine.add('sudo', SUDO)
  const { code, stderr } = await machine.provide()
  expect(code).toBe(1)
  expect(stderr).toContain('no network')
  expect(stderr).toContain('No test was run: git not found.')
})

test('an installation waits for another one that holds the lock', async () => {
  const machine = await setMachine(...without('rg', 'bwrap'))
  const locked = 'cd "${0%/*}"; [ -e held ] || { : > held; echo "E: Could not get lock /var/lib/apt" >&2; exit 100; }'
  await machine.add('apt-get', `${locked}\n${APT}`)
  await machine.add('sudo', SUDO)
  const { code, stdout } = await machine.provide()
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('Waiting for another installation to end\n'),
  })
})

test('a program that does not run counts as missing, or is reported with its reason', async () => {
  const machine = await setMachine(...ALL)
  await machine.add('chromium', 'echo "requires the chromium snap" >&2; exit 1')
  expect((await machine.provide()).stderr).toContain('chromium not found')
  await machine.add('chromium')
  await machine.add('bwrap', '', '/no/such/interpreter')
  expect((await machine.provide()).stderr).toMatch(/^No test was run: bwrap cannot make a sandbox here \(.*ENOENT\)/)
  await machine.replaceByDirectory('bwrap')
  expect((await machine.provide()).stderr).toContain('bwrap not found')
})

test('a Node that does not run is reported with its reason', async () => {
  const machine = await setMachine(...ALL)
  await machine.breakNode('echo "GLIBC_2.99 not found" >&2; exit 1')
  const { code, stderr } = await machine.provide()
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'No test was run: the Node of the npm packages does not run here (GLIBC_2.99 not found). Run: npm ci\n',
  })
})

test('bubblewrap that is installed and not allowed to work is reported with its reason', async () => {
  const machine = await setMachine(...ALL)
  await machine.add('bwrap', 'echo "bwrap: No permissions to create new namespace" >&2; exit 1')
  expect(await machine.provide()).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^No test was run: bwrap cannot make a sandbox here \(bwrap: No permissions.*\n$/),
  })
})
