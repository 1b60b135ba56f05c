/** The sandbox against an agent that attacks it: what it swaps under the launcher, and what it asks of the kernel. */
import { randomUUID } from 'node:crypto'
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SandboxPlan } from '../../src/sandbox/mounts.ts'
import { numberOf, type Syscall } from '../../src/sandbox/seccomp-syscalls.ts'
import { findProgram, HostEnvironment } from '../../src/lib/start-process.ts'
import type { ShellResult } from '../../src/shell/shell.ts'
import { BashShells } from '../../src/shell/shells.ts'
import { requireSandbox } from '../support/require-sandbox.ts'
import { runIn } from '../shell/shell-fixture.ts'

const SECRET = 'what-no-agent-may-read'
const PATH = process.env['PATH']!
const BWRAP = findProgram('bwrap', PATH)!

async function setHost() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'sandbox-')))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const [dataDir, workdirBase, home] = ['data', 'work', 'home'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [dataDir, workdirBase, join(home, '.ssh')]) await mkdir(directory, { recursive: true })
  for (const path of [join(dataDir, 'log'), join(home, '.ssh/id')]) await writeFile(path, SECRET)

  const open = async (workdir: string, plan: Partial<SandboxPlan> = {}) => {
    const session = join(dataDir, 'sessions', randomUUID())
    const launcher = await requireSandbox({ dataDir, workdirBase, home, ...plan })
    const shells = new BashShells({
      conversationId: randomUUID(),
      workdir,
      stateDir: join(session, 'shells'),
      outputDir: join(session, 'outputs'),
      privateDir: join(session, 'private'),
      env: HostEnvironment.from({ PATH: plan.path ?? PATH }),
      launcher,
    })
    onTestFinished(() => shells.close())
    return (command: string, session = 'agent'): Promise<ShellResult> => runIn(shells.get(session), command)
  }

  /** A program in the place of bwrap, that does something first: at the worst moment, as the check is over. */
  const bwrapAfter = async (script: string): Promise<string> => {
    const bin = join(root, `bin-${randomUUID()}`)
    await mkdir(bin)
    await writeFile(join(bin, 'bwrap'), `#!/bin/sh\n${script}\nexec ${BWRAP} "$@"\n`, { mode: 0o755 })
    return [bin, PATH].join(delimiter)
  }
  return { root, dataDir, workdirBase, home, open, bwrapAfter }
}

describe('a workdir in the workdir of another conversation', () => {
  test('that the other one swaps for a link after the check stays what it was', async () => {
    const { dataDir, workdirBase, open, bwrapAfter } = await setHost()
    const inner = join(workdirBase, 'outer/inner')
    await mkdir(inner, { recursive: true })
    await writeFile(join(inner, 'mine'), 'mine\n')
    const swap = `[ -e ${inner}.moved ] || case "$*" in *${inner}*) mv ${inner} ${inner}.moved; ln -s ${dataDir} ${inner};; esac`
    const run = await open(inner, { path: await bwrapAfter(swap) })
    const { stdout } = await run('cat mine log; echo written >written; ls -a')
    expect(stdout).toContain('mine\n')
    expect(stdout).not.toContain(SECRET)
    expect(await readdir(dataDir)).not.toContain('written')
    expect(await readFile(join(`${inner}.moved`, 'written'), 'utf8')).toBe('written\n')
  })

  test.each([
    ['itself', 'outer/a/inner'],
    ['a directory above it', 'outer/a'],
  ])('gets no shell when %s is a link by then', async (_, swapped) => {
    const { root, home, workdirBase, open } = await setHost()
    const inner = join(workdirBase, 'outer/a/inner')
    await mkdir(join(home, 'inner'))
    await mkdir(inner, { recursive: true })
    await rename(join(workdirBase, swapped), join(root, 'moved'))
    await symlink(home, join(workdirBase, swapped))
    await expect((await open(inner))('ls')).rejects.toThrow(/has become a link/)
  })

  test('that was deleted is not made again through a link', async () => {
    const { home, workdirBase, open } = await setHost()
    const inner = join(workdirBase, 'outer/a/inner')
    await mkdir(join(workdirBase, 'outer'))
    await symlink(home, join(workdirBase, 'outer/a'))
    await expect((await open(inner))('ls')).rejects.toThrow(/has become a link/)
    expect(await readdir(home)).toEqual(['.ssh'])
  })

  test('is made again when it was deleted', async () => {
    const { workdirBase, open } = await setHost()
    const inner = join(workdirBase, 'outer/a/inner')
    const run = await open(inner)
    expect((await run('pwd; touch file; ls')).stdout).toBe(`${inner}\nfile\n`)
  })

  test('gets no shell from a bubblewrap that mounts by name only', async () => {
    const { workdirBase, open, bwrapAfter } = await setHost()
    const path = await bwrapAfter(`case $1 in --help) ${BWRAP} --help | grep -v -e -bind-fd; exit;; esac`)
    await expect((await open(join(workdirBase, 'outer/inner'), { path }))('ls')).rejects.toThrow(/no --bind-fd/)
    expect((await (await open(join(workdirBase, 'outer'), { path }))('echo up')).stdout).toBe('up\n')
  })
})

test('the first shells of a conversation start at once, and have one home', async () => {
  const { workdirBase, open } = await setHost()
  const run = await open(join(workdirBase, 'new'))
  const names = Array.from({ length: 12 }, (_, i) => `session-${i}`)
  const results = await Promise.all(names.map((name) => run(`touch ~/${name}`, name)))
  expect(results.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
    names.map(() => ({ exitCode: 0, stderr: '' })),
  )
  expect((await run('ls ~', 'agent')).stdout.trim().split('\n')).toEqual(names.toSorted())
})

test('a program directory on the search path that becomes a link shows nothing of what it leads to', async () => {
  const { home, workdirBase, open } = await setHost()
  const bin = join(home, 'project/bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'tool'), '#!/bin/sh\necho a tool\n', { mode: 0o755 })
  const path = [bin, PATH].join(delimiter)
  const run = await open(join(workdirBase, 'one'), { path })
  expect((await run('tool')).stdout).toBe('a tool\n')
  await rename(bin, `${bin}.moved`)
  await symlink(join(home, '.ssh'), bin)
  expect((await run(`exit`)).exitCode).toBe(0)
  expect((await run(`cat ${bin}/* ${home}/.ssh/*`)).stdout).not.toContain(SECRET)
})

describe('from the kernel a shell gets', () => {
  /** By its number: what the C library makes of a call does not matter. */
  const ask = (name: Syscall, ...args: (number | string)[]) => {
    const number = numberOf(name, process.arch === 'arm64' ? 'arm64' : 'x64')
    // A string has to be a variable: the kernel could write there.
    const values = args.map((arg, at) => (typeof arg === 'string' ? `(my $a${at} = ${arg})` : arg))
    return `perl -e '$r = syscall(${[number, ...values].join(', ')}); print $r >= 0 ? "allowed\\n" : ($!+0) . "\\n"'`
  }

  test.each<[Syscall, ...(number | string)[]]>([
    ['fcntl', 0, 1024, 1],
    ['keyctl', 0, -3, 0],
    ['add_key', '"user"', '"name"', '"secret"', 6, -4],
    ['request_key', '"user"', '"name"', 0, -4],
    ['bpf', 0, 0, 0],
    ['userfaultfd', 1],
    ['perf_event_open', 0, 0, -1, -1, 0],
    ['io_uring_setup', 1, 0],
    ['mount', '"none"', '"/tmp"', '"tmpfs"', 0, 0],
    ['unshare', 0x10000000],
    ['unshare', 0x20000],
    ['setns', 0, 0],
    ['fsopen', '"tmpfs"', 0],
    ['open_by_handle_at', 0, 0, 0],
    ['process_vm_readv', 1, 0, 0, 0, 0, 0],
    ['ptrace', 16, 1, 0, 0],
    ['syslog', 3, 0, 0],
    ['reboot', 0, 0, 0],
    ['personality', 0x0400000],
  ])('no %s(%j, …)', async (...call) => {
    const { workdirBase, open } = await setHost()
    expect((await (await open(join(workdirBase, 'one')))(ask(...call))).stdout).toBe('1\n')
  })

  test('threads and processes by calls that can be looked at, and namespaces by none', async () => {
    const { workdirBase, open } = await setHost()
    const run = await open(join(workdirBase, 'one'))
    expect((await run(ask('clone3', 0, 0))).stdout).toBe('38\n')
    expect((await run('unshare -Ur true; unshare -m true; unshare -n true; echo $?')).stdout).toBe('1\n')
    expect((await run('cat /proc/keys /proc/kcore')).stdout).toBe('')
  })

  test('the usual sockets, and none to the hypervisor, of packets or for other parts of the kernel', async () => {
    const { workdirBase, open } = await setHost()
    const run = await open(join(workdirBase, 'one'))
    for (const [family, type, protocol, outcome] of [
      [1, 1, 0, 'allowed'],
      [2, 1, 0, 'allowed'],
      [10, 2, 0, 'allowed'],
      [16, 3, 0, 'allowed'],
      [16, 3, 9, '93'],
      [17, 3, 0, '97'],
      [38, 5, 0, '97'],
      [40, 1, 0, '97'],
    ] as const)
      expect((await run(ask('socket', family, type, protocol))).stdout.trim(), String(family)).toBe(outcome)
  })

  test('no files that would give their owner’s rights to others', async () => {
    const { workdirBase, open } = await setHost()
    const workdir = join(workdirBase, 'one')
    const run = await open(workdir)
    const flags = 0o101 // O_CREAT, O_WRONLY
    const commands = [
      'cp /bin/true set; chmod 4755 set; chmod g+s set; chmod u+s,g+s set',
      'install -m 6755 /bin/true installed',
      'perl -e \'chmod 04755, "set"; open F, "set"; chmod 06755, *F\'',
      ask('openat', -100, '"opened"', flags, 0o4755),
      ask('openat2', -100, '"opened2"', 'pack("Q3", 0101, 04755, 0)', 24),
      ask('mknodat', -100, '"made"', 0o106755, 0),
      ask('fchmodat2', -100, '"set"', 0o4755, 0),
      'mkdir d; chmod 2775 d; cp -p set d/; chmod 1777 d; chmod 755 set; touch plain',
    ]
    for (const command of commands) expect((await run(command)).stderr, command).not.toMatch(/syntax|read-only/)
    const entries = await readdir(workdir, { recursive: true })
    expect(entries).toEqual(expect.arrayContaining(['set', 'd', 'plain']))
    for (const entry of ['.', ...entries]) expect((await stat(join(workdir, entry))).mode & 0o6000, entry).toBe(0)
    expect((await stat(join(workdir, 'd'))).mode & 0o7777).toBe(0o1777)
  })

  test('no hold on the init that ends it with the server', async () => {
    const { workdirBase, open } = await setHost()
    const run = await open(join(workdirBase, 'one'))
    for (const memory of ['/proc/1/mem', '/proc/1/task/1/mem'])
      expect((await run(`(exec 5<${memory}) 2>/dev/null && echo open`)).stdout, memory).toBe('')
    expect((await run('kill -STOP 1; kill -KILL 1; echo lives')).stdout).toBe('lives\n')
  })
})

describe('with a list of what is readable', () => {
  test('a shell sees the system files, the listed paths and its own directories, and no copy of the data', async () => {
    const { root, dataDir, workdirBase, open } = await setHost()
    const [shared, backup] = [join(root, 'shared'), join(root, 'data-backup')]
    for (const directory of [shared, backup]) {
      await mkdir(directory)
      await writeFile(join(directory, 'file'), `in ${directory}\n`)
      await chmod(directory, 0o777)
    }
    const run = await open(join(workdirBase, 'one'), { readable: [shared] })
    expect((await run(`cat ${shared}/file`)).stdout).toBe(`in ${shared}\n`)
    expect((await run(`touch ${shared}/x`)).stderr).toMatch(/Read-only/)
    expect((await run(`cat ${backup}/file ${dataDir}/log /etc/shadow /etc/gshadow`)).stdout).toBe('')
    expect((await run(`ls ${root}`)).stdout).toBe('data\nhome\nshared\nwork\n')
    expect((await run('ls /; ls /root /home /srv /opt /var/lib')).stdout).not.toMatch(/^(srv|opt|boot|sys|mnt|media)$/m)
    expect((await run('touch /x /etc/x /usr/x')).stderr.match(/Read-only/g)).toHaveLength(3)
    expect(
      (await run('mkdir d && cd d && git init -q . && date >/dev/null && getent passwd root && echo $HOME')).stdout,
    ).toMatch(/^root:.*\n\/.*private\/home\n$/)
  })

  test('a listed directory does not show the server’s files in it', async () => {
    const { root, dataDir, workdirBase, open } = await setHost()
    const run = await open(join(workdirBase, 'one'), { readable: [root] })
    expect((await run(`ls ${root}; cat ${dataDir}/log ${root}/home/.ssh/id`)).stdout).not.toContain(SECRET)
  })
})
