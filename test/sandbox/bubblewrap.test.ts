/** The sandbox itself: what a shell in it cannot see, reach or leave behind; and when none is available. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hiddenFilesIn, hideFiles } from '../../src/access/hidden-files.ts'
import { findBubblewrap } from '../../src/sandbox/find-launcher.ts'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import type { ShellResult, Shells } from '../../src/shell/shell.ts'
import { BashShells } from '../../src/shell/shells.ts'
import { runAsNobody } from '../support/unprivileged.ts'
import { requireSandbox } from '../support/require-sandbox.ts'
import { eventually, processesOf, runIn } from '../shell/shell-fixture.ts'

const KEY = 'a-key-that-nobody-may-read'
const NOT_THERE = /No such file or directory/
const isRoot = process.getuid?.() === 0
/** Where nothing has to be mounted among temporary files. */
const NOT_TEMPORARY = isRoot ? '/var/lib' : homedir()
const READ_ONLY = /Read-only file system/

type Place = Awaited<ReturnType<typeof setPlace>>

/** A server's files as they would be, with a secret in each that is none of the agent's business. */
async function setPlace({ under = tmpdir() } = {}) {
  const root = await realpath(await mkdtemp(join(under, 'sandbox-')))
  const opened: Shells[] = []
  onTestFinished(async () => {
    for (const shells of opened) await shells.close()
    await rm(root, { recursive: true, force: true })
  })
  const [dataDir, home, etc] = ['data', 'home', 'etc'].map((name) => join(root, name)) as [string, string, string]
  const workdirBase = join(dataDir, 'work')
  for (const directory of [workdirBase, join(dataDir, 'sessions'), join(home, '.ssh'), join(home, 'bin'), etc])
    await mkdir(directory, { recursive: true })
  const keyFile = join(etc, 'key')
  const secrets = ['lock.db', 'master-key'].map((name) => join(dataDir, name))
  for (const path of [...secrets, join(home, '.ssh/id'), keyFile]) await writeFile(path, KEY)
  await writeFile(join(home, 'bin/from-home'), '#!/bin/sh\necho a program of the home\n', { mode: 0o755 })
  const path = `${home}/bin:${process.env['PATH']}`
  const otherKeyFiles = hiddenFilesIn(dataDir)
  const whole = { dataDir, workdirBase, keyFiles: [keyFile], otherKeyFiles, home, path, named: [] }

  /** The shells of a conversation of its own. */
  const open = async ({ workdir, id = randomUUID() }: { workdir?: string; id?: string } = {}) => {
    const session = join(dataDir, 'sessions', id)
    await mkdir(session, { recursive: true })
    await writeFile(join(session, 'events.jsonl'), KEY)
    const shells = new BashShells({
      conversationId: id,
      workdir: workdir ?? join(workdirBase, id),
      stateDir: join(session, 'shells'),
      outputDir: join(session, 'outputs'),
      privateDir: join(session, 'private'),
      env: HostEnvironment.from({ PATH: path, HOME: home, TMPDIR: '/nowhere', XDG_RUNTIME_DIR: '/run/user/1' }),
      launcher: await requireSandbox(whole),
    })
    opened.push(shells)
    const run = (command: string): Promise<ShellResult> => runIn(shells.get('agent'), command)
    return { id, session, shells, run, workdir: workdir ?? join(workdirBase, id) }
  }
  return { root, dataDir, workdirBase, home, keyFile, secrets, whole, open }
}

describe('a shell sees of the files of the server', () => {
  test('only the outputs, the command and the home of one conversation', async () => {
    const place = await setPlace()
    const other = await place.open()
    await other.run('echo theirs >file')
    const { run, session, workdir } = await place.open()
    const paths = [
      ...place.secrets,
      join(session, 'events.jsonl'),
      join(other.session, 'events.jsonl'),
      join(other.workdir, 'file'),
    ]
    for (const path of paths) expect((await run(`cat ${path}`)).stderr, path).toMatch(NOT_THERE)
    const seen = (await run(`find ${place.dataDir} -mindepth 1 -maxdepth 3`)).stdout.trim().split('\n').sort()
    const own = [session, ...['outputs', 'private', 'shells'].map((name) => join(session, name)), workdir]
    expect(seen).toEqual([...own, join(place.dataDir, 'sessions'), place.workdirBase].sort())
  })

  test('nothing through a link, nor by moving directories', async () => {
    const place = await setPlace()
    const { run } = await place.open()
    for (const path of [...place.secrets, place.keyFile]) {
      const { stdout } = await run(
        `ln -sfn ${path} link; cat link; cp link copy; mv ${path} taken; ln ${path} hard; cat copy taken hard`,
      )
      expect(stdout).not.toContain(KEY)
    }
    const { stdout } = await run(
      `umount ${place.dataDir}; umount -l ${place.dataDir}; unshare -U -m --map-user=0 umount ${place.dataDir}; ls ${place.dataDir}`,
    )
    expect(stdout.trim().split('\n').sort()).toEqual(['sessions', 'work'])
  })

  test('no file that it can change, so that the server follows no link of its making', async () => {
    const place = await setPlace()
    const { run, session, shells } = await place.open()
    const target = join(place.home, '.ssh/id')
    for (const path of ['shells/agent/command', 'shells/agent/state', 'outputs/background'].map((name) =>
      join(session, name),
    ))
      expect((await run(`ln -sfn ${target} ${path}`)).stderr, path).toMatch(READ_ONLY)
    expect((await run(`touch ${place.dataDir}/x ${session}/x`)).stderr).toMatch(READ_ONLY)
    await shells.get('agent').restart()
    await run('echo "echo owned"')
    expect(await readFile(target, 'utf8')).toBe(KEY)
  })

  test('no key file, wherever it is', async () => {
    const place = await setPlace()
    const { run } = await place.open()
    expect(await run(`cat ${place.keyFile}`)).toMatchObject({ exitCode: 1, stdout: '' })
  })

  test('no key file in its own workdir, where it cannot be moved either', async () => {
    const place = await setPlace()
    const workdir = join(place.root, 'project')
    await mkdir(workdir)
    await writeFile(join(workdir, '.env'), KEY)
    place.whole.keyFiles.push(join(workdir, '.env'))
    const { run } = await place.open({ workdir })
    for (const command of [
      'cat .env',
      'mv .env moved; cat moved',
      'rm .env; cat .env',
      'ln .env hard; cat hard',
      'grep -r . .',
    ])
      expect((await run(command)).stdout, command).not.toContain(KEY)
    expect((await run('echo kept >file; cat file')).stdout).toBe('kept\n')
    expect(await readFile(join(workdir, '.env'), 'utf8')).toBe(KEY)
  })

  test('none of another conversation that works elsewhere under the base', async () => {
    const place = await setPlace()
    place.whole.workdirBase = join(place.root, 'base')
    const [one, other] = ['one', 'other'].map((name) => join(place.whole.workdirBase, name)) as [string, string]
    await mkdir(one, { recursive: true })
    await mkdir(other)
    const { run } = await place.open({ workdir: one })
    expect((await run(`ls ${place.whole.workdirBase}; touch ../x`)).stdout).toBe('one\n')
    expect(existsSync(join(place.whole.workdirBase, 'x'))).toBe(false)
  })
})

describe('no shell is started', () => {
  test.each([
    ['holds the data', (place: Place) => place.root],
    ['is the data directory', (place: Place) => place.dataDir],
    ['is among the server’s files', (place: Place) => join(place.dataDir, 'sessions')],
  ])('in a workdir that %s', async (_, workdirOf) => {
    const place = await setPlace()
    const { run } = await place.open({ workdir: workdirOf(place) })
    await expect(run('true')).rejects.toThrow(/server’s own files are in the workdir/)
  })

  test('in a workdir with a key deep inside, from where the agent could move it', async () => {
    const place = await setPlace()
    const workdir = join(place.root, 'project')
    await mkdir(join(workdir, 'deep'), { recursive: true })
    await writeFile(join(workdir, 'deep/key'), KEY)
    place.whole.keyFiles.push(join(workdir, 'deep/key'))
    await expect((await place.open({ workdir })).run('true')).rejects.toThrow(/server’s own files are in the workdir/)
  })

  // Other users can write only to places that are hidden as a whole.
  test.runIf(isRoot)(
    'unless it belongs to another program: the other files with keys are hidden where that is possible',
    async () => {
      const place = await setPlace({ under: NOT_TEMPORARY })
      const workdir = join(place.root, 'project')
      await mkdir(join(workdir, 'deep'), { recursive: true })
      const files = ['project/deep/key', 'project/settings', 'etc/theirs'].map((name) => join(place.root, name))
      for (const file of files) await writeFile(file, KEY)
      const { run } = await place.open({ workdir })
      expect((await run(`cat ${files[2]}`)).stdout).toContain(KEY)
      await hideFiles(place.dataDir, files)
      const other = await place.open({ workdir })
      const { stdout } = await other.run(`cat ${files[0]}; echo; cat ${files[1]} ${files[2]}`)
      expect(stdout).toBe(`${KEY}\n`)
    },
  )

  test('in a workdir that has become a link to somewhere else', async () => {
    const place = await setPlace()
    const { run, workdir, shells } = await place.open()
    await run('true')
    await shells.get('agent').close()
    await rename(workdir, `${workdir}-moved`)
    await symlink(place.home, workdir)
    await expect(runIn(shells.get('agent'), 'ls')).rejects.toThrow(/has become a link/)
  })

  test('on the host instead, when bubblewrap has gone', async () => {
    const place = await setPlace()
    const bin = join(place.root, 'bin')
    await mkdir(bin)
    const bwrap = await which('bwrap')
    await copyFile(bwrap, join(bin, 'bwrap'))
    await chmod(join(bin, 'bwrap'), 0o755)
    place.whole.path = `${bin}:/usr/bin:/bin`
    const { run } = await place.open()
    expect((await run('echo up; exit')).stdout).toBe('up\n')
    await rm(join(bin, 'bwrap'))
    await expect(run('touch /tmp/on-the-host')).rejects.toThrow(/did not start.*ENOENT/)
  })
})

describe('a shell in the sandbox', () => {
  test('can write only its workdir, its home and its temporary files', async () => {
    const place = await setPlace({ under: NOT_TEMPORARY })
    const { run, workdir, session } = await place.open()
    const elsewhere = ['/', '/etc', '/usr/bin', '/var', '/sys/fs/cgroup', place.root, place.home]
    for (const directory of elsewhere)
      expect((await run(`touch ${directory}/x-${place.whole.dataDir.length}`)).stderr, directory).toMatch(
        /Read-only|denied/,
      )
    expect(await run('touch file ~/file /tmp/file /var/tmp/file && echo $HOME $TMPDIR')).toMatchObject({
      stdout: `${session}/private/home /tmp\n`,
    })
    expect(existsSync(join(workdir, 'file'))).toBe(true)
    expect(existsSync('/tmp/file')).toBe(false)
  })

  test('does not see the home of the server’s user, but the programs in it', async () => {
    const place = await setPlace()
    const { run } = await place.open()
    expect((await run(`cat ${place.home}/.ssh/id`)).stderr).toMatch(NOT_THERE)
    expect((await run(`ls -A ${place.home}; from-home`)).stdout).toBe('bin\na program of the home\n')
    expect((await run('ls -A /root /home 2>/dev/null | grep -vE "^(/root|/home|):?$"')).stdout).not.toMatch(
      /ssh|bashrc|gitconfig|npmrc/,
    )
  })

  test('does not see that home either when it is on the search path itself', async () => {
    const place = await setPlace()
    place.whole.path = `${place.home}:${place.home}/:${place.whole.path}`
    const { run } = await place.open()
    expect((await run(`ls -A ${place.home}`)).stdout).toBe('bin\n')
  })

  test('has its devices, though a key was read from one', async () => {
    const place = await setPlace()
    place.whole.keyFiles.push('/dev/null', '/dev/fd/0')
    const { run } = await place.open()
    expect((await run('echo x >/dev/null && echo written')).stdout).toBe('written\n')
  })

  test('finds the toolchains of that home in its own', async () => {
    const place = await setPlace()
    await mkdir(join(place.home, '.rustup'))
    await writeFile(join(place.home, '.rustup/settings.toml'), 'default')
    const { run } = await place.open()
    expect((await run('cat ~/.rustup/settings.toml; ls -A ~; touch ~/.rustup/x')).stdout).toBe('default.rustup\n')
  })

  test('sees no socket of its services and no device of its hardware', async () => {
    const { run } = await (await setPlace()).open()
    expect((await run('find /run -type s')).stdout).toBe('')
    const { stdout } = await run('find /dev -type b; ls /dev; mknod disk b 8 0 && cat disk')
    expect(stdout).not.toMatch(/sd|vd|nvme|mem|kmsg|fuse|kvm/)
  })

  test('cannot change the kernel’s settings, not even as root', async () => {
    const { run } = await (await setPlace()).open()
    // Opened only: if the sandbox failed, nothing would be changed.
    for (const setting of ['sys/kernel/core_pattern', 'sys/kernel/modprobe', 'sys/vm/drop_caches', 'sysrq-trigger'])
      expect((await run(`: >>/proc/${setting} && echo open`)).stdout, setting).toBe('')
  })

  test('has no right that reaches mounts, devices, other processes or the network’s setup', async () => {
    const { run } = await (await setPlace()).open()
    const { stdout } = await run(
      'grep -E "^(CapEff|CapPrm|CapAmb|NoNewPrivs)" /proc/self/status; mount -t tmpfs none /mnt && echo mounted',
    )
    const sets = [...stdout.matchAll(/^Cap\w+:\s+([0-9a-f]+)$/gm)].map(([, bits]) => BigInt(`0x${bits}`))
    expect(sets).toHaveLength(3)
    // capability(7): 0 to 7 are about files and users, 10 is a port below 1024; 2 (DAC_READ_SEARCH) opens files by handle.
    const harmless = [0, 1, 3, 4, 5, 6, 7, 10].reduce((bits, bit) => bits | (1n << BigInt(bit)), 0n)
    for (const bits of sets) expect(bits & ~harmless).toBe(0n)
    expect(stdout).toMatch(/NoNewPrivs:\s+1/)
    expect(stdout).not.toContain('mounted')
  })

  test('sees, signals and reads no process but its own', async () => {
    const { run, shells } = await (await setPlace()).open()
    const victim = spawn('sleep', ['30'])
    onTestFinished(() => void victim.kill('SIGKILL'))
    await runIn(shells.get('other'), 'sleep 30 >/dev/null 2>&1 &')
    const names = (await run('cat /proc/[0-9]*/comm')).stdout.trim().split('\n')
    expect([...new Set(names)].sort()).toEqual(['bash', 'bwrap'])
    for (const pid of [process.pid, victim.pid!, process.ppid]) {
      expect((await run(`kill -9 ${pid}`)).stderr).toMatch(/No such process/)
      expect((await run(`cat /proc/${pid}/environ /proc/${pid}/mem`)).stderr).toMatch(NOT_THERE)
    }
    expect((await run('kill -9 -1; :')).exitCode).not.toBeNull()
    expect(victim.exitCode ?? victim.signalCode).toBeNull()
    expect((await run("cat /proc/1/environ | tr '\\0' '\\n' | cut -d= -f1")).stdout).not.toMatch(
      /OPENHANDS|LLM_|VITEST/,
    )
  })

  test('holds no file but its own streams', async () => {
    const { run } = await (await setPlace()).open()
    // The fourth is what `ls` reads.
    expect((await run('ls /proc/self/fd')).stdout).toBe('0\n1\n2\n3\n')
    expect((await run('readlink /proc/1/fd/* | grep -E "/|socket" | grep -v /dev/null')).stdout).not.toMatch(/key|data/)
  })
})

describe('what a shell leaves behind', () => {
  const seconds = 1_000_000 + Math.floor(Math.random() * 1_000_000)
  const DAEMON = `env -i setsid bash -c '(sleep ${seconds} & wait) >/dev/null 2>&1 &'`
  /** Without any mark: nothing but its name tells it. */
  const daemons = async () => {
    const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))
    return lines.filter((line) => line === `sleep\0${seconds}\0`).length
  }

  test('is dead when the close resolves, however it tried to hide', async () => {
    const { run, shells } = await (await setPlace()).open()
    await run(DAEMON)
    await eventually(async () => (await daemons()) === 1)
    await shells.close()
    expect(await daemons()).toBe(0)
  })

  test('dies with the shell, and the result says so', async () => {
    const { run, id } = await (await setPlace()).open()
    await run('sleep 30 >/dev/null 2>&1 &')
    expect((await run('exit 3')).note).toMatch(/ended \(exit code 3\), and with it its background processes/)
    expect(processesOf(id)).toBe(0)
    expect((await run('exit 3')).note).not.toMatch(/background/)
  })

  test('keeps the shell from being closed for idleness', async () => {
    const place = await setPlace()
    const openShortly = async () => {
      const { id, session, workdir } = await place.open()
      const shells = new BashShells({
        conversationId: id,
        workdir,
        stateDir: join(session, 'shells'),
        outputDir: join(session, 'outputs'),
        privateDir: join(session, 'private'),
        env: HostEnvironment.from({ PATH: process.env['PATH'] }),
        launcher: await requireSandbox(place.whole),
        limits: { idleMs: 20 },
      })
      onTestFinished(() => shells.close())
      return shells
    }
    const shells = await openShortly()
    await runIn(shells.get('agent'), "env -i setsid sh -c 'sleep 1000 >/dev/null 2>&1 &' >/dev/null 2>&1; sleep 0.05")
    // Others, which became idle later, are closed meanwhile.
    for (let times = 0; times < 2; times++) {
      const others = await openShortly()
      await runIn(others.get('agent'), 'true')
      await expect.poll(() => others.list()).toMatchObject([{ status: 'suspended' }])
    }
    expect((await runIn(shells.get('agent'), 'cat /proc/[0-9]*/comm')).stdout).toContain('sleep')
  })

  test('stays for its next shell, in the home and among temporary files', async () => {
    const { run, shells } = await (await setPlace({ under: NOT_TEMPORARY })).open()
    await run('echo 1 >~/file; echo 2 >/tmp/file; exit')
    expect((await run('cat ~/file /tmp/file')).stdout).toBe('1\n2\n')
    expect((await runIn(shells.get('other'), 'cat ~/file /tmp/file')).stdout).toBe('1\n2\n')
  })
})

test('normal work continues inside the sandbox', async () => {
  const { run } = await (await setPlace()).open()
  const commands = [
    'git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline | wc -l',
    'mkdir x && echo 1 >x/1 && tar cf x.tar x && tar xf x.tar && cat x/1',
    'getent hosts localhost >/dev/null && echo resolved',
    'diff <(echo a) <(echo a) && echo same',
    'echo $((RANDOM - RANDOM)) >/dev/shm/x && echo shared',
    'mktemp >/dev/null && echo temporary',
  ]
  const { stdout } = await run(commands.join('\n'))
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.trim()),
  ).toEqual(['1', '1', 'resolved', 'same', 'shared', 'temporary'])
})

describe('looking for bubblewrap', () => {
  test('reports that it is not installed', async () => {
    const place = await setPlace()
    expect(await findBubblewrap({ ...place.whole, path: place.root })).toEqual({
      missing: 'bubblewrap is not installed: there is no bwrap on PATH',
    })
  })

  test('quotes why it does not work', async () => {
    const place = await setPlace()
    const words = 'bwrap: No permissions to create new namespace: Operation not permitted'
    await writeFile(join(place.root, 'bwrap'), `#!/bin/sh\necho ${words} >&2; exit 1\n`, { mode: 0o755 })
    expect(await findBubblewrap({ ...place.whole, path: `relative:${place.root}:/bin` })).toEqual({
      missing: `bubblewrap does not work here: ${words}`,
    })
  })

  test('ends one that does not answer, with all that it has started', async () => {
    const place = await setPlace()
    const note = join(place.root, 'note')
    const script = `#!/bin/sh\n[ "$1" = --help ] || [ -e ${note} ] && exit\nsleep 1000 &\necho $! >${note}\nwait\n`
    await writeFile(join(place.root, 'bwrap'), script, { mode: 0o755 })
    expect(await findBubblewrap({ ...place.whole, path: `${place.root}:/bin` })).toHaveProperty('launcher')
    const child = Number(await readFile(note, 'utf8'))
    expect(child).toBeGreaterThan(0)
    await eventually(() => !existsSync(`/proc/${child}`))
  })
})

/** Everywhere else the tests run as whoever runs them. */
test.runIf(isRoot)('an unprivileged user gets the same sandbox', async () => {
  expect(await runAsNobody(join(import.meta.dirname, 'children/unprivileged-shell.ts'))).toEqual({
    user: '65534\n',
    key: '',
    secret: '',
    nested: '',
    written: 'here\n',
    outside: false,
    capabilities: '0000000000000000\n',
    processes: 'bash\nbwrap\n',
    daemonIsGone: true,
    isRemoved: true,
  })
})

function which(name: string): Promise<string> {
  const found = process.env['PATH']!.split(':')
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path))
  if (found === undefined) throw new Error(`${name} is not on PATH`)
  return realpath(found)
}
