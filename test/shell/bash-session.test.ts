import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventually, isSandboxed, openShells, processesOf, runIn } from './shell-fixture.ts'

/** In a sandbox it is reported as shells report it: by its exit code. */
const KILLED = /SIGKILL|exit code 137/

describe('what a command changes stays for the next', () => {
  test.each([
    ['the working directory', 'mkdir -p sub; cd sub', 'basename "$PWD"', 'sub\n'],
    ['an exported variable', 'export A="one two"', 'sh -c \'echo "$A"\'', 'one two\n'],
    ['a variable of the shell', 'a=1; declare -A map; map[k]=v', 'echo $a ${map[k]}', '1 v\n'],
    ['a function', 'f() { echo "f $1"; }', 'f x', 'f x\n'],
    ['an alias', 'alias ll="echo listed"', 'll', 'listed\n'],
    ['a set option', 'set -o noglob', 'echo *', '*\n'],
    ['a shopt option', 'shopt -s nullglob', 'echo no-such-*', '\n'],
    ['what was sourced', 'echo "b=2" >rc; source ./rc', 'echo $b', '2\n'],
    ['a trap', 'trap "echo trapped" USR1', 'kill -USR1 $$', 'trapped\n'],
  ])('%s', async (_, change, look, expected) => {
    const { run } = await openShells()
    expect(await run(change)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' })
    expect(await run(look)).toMatchObject({ exitCode: 0, stdout: expected, stderr: '' })
  })

  test('strict options and traps, under which the shell lives as long as commands succeed', async () => {
    const { run } = await openShells()
    await run("set -euo pipefail; set -T; trap 'echo debug >>log' DEBUG; trap 'echo failed' ERR; IFS=/")
    for (let i = 0; i < 3; i++)
      expect(await run(`echo ${i}`)).toMatchObject({ exitCode: 0, stdout: `${i}\n`, stderr: '' })
    expect((await run('cat log | sort -u')).stdout).toBe('debug\n')
    expect((await run('echo $undefined')).stderr).toContain('unbound variable')
  })

  test('redirections made by exec do not', async () => {
    const { run } = await openShells()
    expect((await run('exec >log 2>&1; echo to the log')).stdout).toBe('')
    expect((await run('echo here; cat log')).stdout).toBe('here\nto the log\n')
  })
})

describe('a result', () => {
  test('has both streams apart, each in order, and the exit code', async () => {
    const { run, workdir } = await openShells()
    const result = await run('echo 1; echo a >&2; echo 2; sh -c "echo b >&2; echo 3"; (exit 7)')
    expect(result).toMatchObject({ exitCode: 7, stdout: '1\n2\n3\n', stderr: 'a\nb\n', cwd: workdir })
    expect(result).toMatchObject({ timedOut: false, interrupted: false, truncated: false })
    expect(result.note).toBeUndefined()
  })

  test('keeps the order of many writers to one stream', async () => {
    const { run } = await openShells()
    const { stdout } = await run('for i in {1..300}; do echo $i; /bin/echo $i; done')
    expect(stdout).toBe(Array.from({ length: 300 }, (_, i) => `${i + 1}\n${i + 1}\n`).join(''))
  })

  test('has what was written to /dev/stderr and /dev/stdout', async () => {
    const { run } = await openShells()
    expect(await run('echo x >/dev/stderr; echo y >/dev/stdout')).toMatchObject({ stdout: 'y\n', stderr: 'x\n' })
  })

  test('of a syntax error is status 2 and the message, and the shell continues', async () => {
    const { run } = await openShells()
    const result = await run('echo before\nfor i in; do; done')
    expect(result).toMatchObject({ exitCode: 2, stdout: 'before\n' })
    expect(result.stderr).toMatch(/syntax error/)
    expect((await run('echo on')).stdout).toBe('on\n')
  })

  test.each([['echo "never closed'], ["echo 'never closed"], ['if true; then'], ['echo $(('], ['cat <<EOF\nno end']])(
    'of the unfinished %j comes at once, and the shell goes on',
    async (command) => {
      const { run } = await openShells()
      await run(command)
      expect(await run('echo on')).toMatchObject({ exitCode: 0, stdout: 'on\n', stderr: '' })
    },
  )

  test('of a heredoc and of several lines is as in a script', async () => {
    const { run } = await openShells()
    const script = 'x=$(cat <<"EOF"\n$HOME "quoted" \'single\'\nEOF\n)\nfor i in 1 2; do\n  echo "$i $x"\ndone\n# end'
    expect((await run(script)).stdout).toBe('1 $HOME "quoted" \'single\'\n2 $HOME "quoted" \'single\'\n')
  })

  test('of return is its status, and the rest is not run', async () => {
    const { run } = await openShells()
    expect(await run('echo a; return 4; echo b')).toMatchObject({ exitCode: 4, stdout: 'a\n' })
  })

  test('of nothing is nothing', async () => {
    const { run } = await openShells()
    expect(await run('')).toMatchObject({ exitCode: 0, stdout: '', stderr: '' })
    expect(await run('# only a comment')).toMatchObject({ exitCode: 0, stdout: '', stderr: '' })
  })

  test('of a command with NUL in it is as if it were not there', async () => {
    const { run } = await openShells()
    expect((await run('echo a\0b')).stdout).toBe('ab\n')
  })

  test('of a command of a megabyte is right', async () => {
    const { run } = await openShells()
    const long = 'x'.repeat(1_000_000)
    expect((await run(`wc -c <<'EOF'\n${long}\nEOF`)).stdout.trim()).toBe('1000001')
    expect((await run('echo short')).stdout).toBe('short\n')
  })
})

describe('a command', () => {
  test('that reads standard input gets its end', async () => {
    const { run } = await openShells()
    expect(await run('cat; read x; echo "read: $?"')).toMatchObject({ exitCode: 0, stdout: 'read: 1\n' })
  })

  test('has no terminal to ask at', async () => {
    const { run } = await openShells()
    expect((await run('(: </dev/tty) 2>/dev/null || echo none; tty')).stdout).toBe('none\nnot a tty\n')
  })

  test('cannot write to where the shell reports, and that nothing else is open to its processes', async () => {
    const { run } = await openShells()
    expect((await run('echo forged >&99')).stderr).toMatch(/Bad file descriptor/)
    expect(
      (await run('for fd in 3 4 99; do [ -e /proc/$(sh -c "echo \\$PPID")/fd/$fd ] && echo $fd; done; :')).stdout,
    ).toBe('')
  })

  test('gets the variables of its options, and they are kept', async () => {
    const { run } = await openShells()
    expect((await run('sh -c \'echo "$A"\'', { env: { A: "it's $HOME" } })).stdout).toBe("it's $HOME\n")
    expect((await run('echo "$A"')).stdout).toBe("it's $HOME\n")
  })

  test('waits its turn in its session', async () => {
    const { run } = await openShells()
    const results = await Promise.all([run('sleep 0.05; echo 1; x=1'), run('echo 2 $x; x=2'), run('echo 3 $x')])
    expect(results.map(({ stdout }) => stdout)).toEqual(['1\n', '2 1\n', '3 2\n'])
  })

  test('that is aborted before its turn does not run, and answers at once', async () => {
    const { run } = await openShells()
    const first = run('sleep 0.3; echo first')
    const second = run('touch ran', { signal: AbortSignal.abort() })
    expect(await Promise.race([first, second])).toMatchObject({ exitCode: null, interrupted: true })
    expect((await first).stdout).toBe('first\n')
    expect((await run('ls')).stdout).toBe('')
  })
})

describe('after the shell has ended', () => {
  test.each([
    ['exit', 'echo bye; exit 3', { exitCode: 3, stdout: 'bye\n' }, /exit code 3/],
    ['exec', 'exec sh -c "echo replaced; exit 4"', { exitCode: 4, stdout: 'replaced\n' }, /exit code 4/],
    ['a failing set -e', 'set -e; echo on; false; echo not', { exitCode: 1, stdout: 'on\n' }, /exit code 1/],
    ['kill -9 $$', 'kill -9 $$; echo not', { exitCode: 137, stdout: '' }, KILLED],
  ])('by %s, the result says so and the next command starts in the last directory', async (_, command, result, how) => {
    const { run, workdir } = await openShells()
    await run('mkdir sub; cd sub; export A=1; f() { echo f; }; alias g="echo g"')
    const ended = await run(command)
    expect(ended).toMatchObject({ ...result, cwd: join(workdir, 'sub') })
    expect(ended.note).toMatch(how)
    const next = await run('echo $A $-; f; g; pwd')
    expect(next.stdout).toMatch(new RegExp(`^1 [^e]+\nf\ng\n${join(workdir, 'sub')}\n$`))
    expect(next.note).toBeUndefined()
  })

  test('between two commands, the next one says so', async () => {
    const { run, shells, workdir } = await openShells()
    await run('export A=1; { until [ -e go ]; do sleep 0.01; done; kill -9 $$; } >/dev/null 2>&1 &')
    // The shell writes its state after it has reported the end of a command, and before it begins the next one.
    await run(':')
    await writeFile(join(workdir, 'go'), '')
    await expect.poll(() => shells.list()).toMatchObject([{ id: 'agent', status: 'suspended' }])
    const next = await run('echo $A')
    expect(next).toMatchObject({ stdout: '1\n' })
    expect(next.note).toMatch(new RegExp(`had ended since.*(${KILLED.source})`))
  })
})

test('a shell that is killed before it has written its state continues with the earlier one, and says so', async () => {
  const { run, shells } = await openShells()
  await run('export A=1')
  const [session] = await shells.list()
  // More than the pipe takes: the shell waits with the rest of it until something is read, and it is killed before that.
  await run(`A=2; f() { : ${'x'.repeat(600_000)}; }`)
  process.kill(session!.pid!, 'SIGKILL')
  await expect.poll(() => shells.list()).toMatchObject([{ id: 'agent', status: 'suspended' }])
  const next = await run('echo $A')
  expect(next.stdout).toBe('1\n')
  expect(next.note).toMatch(
    /as they were before that command, because the shell ended before it had saved the new ones/,
  )
})

describe('a deleted working directory', () => {
  test('is reported, and the shell falls back to the workdir', async () => {
    const { run, workdir } = await openShells()
    const result = await run('mkdir sub; cd sub; rmdir ../sub')
    expect(result).toMatchObject({ exitCode: 0, cwd: workdir })
    expect(result.note).toContain(`${join(workdir, 'sub')} was deleted; the shell is now in ${workdir}`)
    expect(await run('pwd')).toMatchObject({ exitCode: 0, stdout: `${workdir}\n` })
  })

  test('that was made again is entered again, with nothing to tell', async () => {
    const { run, workdir } = await openShells()
    const result = await run('mkdir sub; cd sub; rmdir ../sub; mkdir ../sub')
    expect(result).toMatchObject({ cwd: join(workdir, 'sub') })
    expect(result.note).toBeUndefined()
    expect((await run('touch x; ls ../sub')).stdout).toBe('x\n')
  })

  test('while no shell runs is reported by the next command', async () => {
    const { run, workdir } = await openShells()
    await run('mkdir sub; cd sub')
    await run('exit')
    await rm(join(workdir, 'sub'), { recursive: true })
    const next = await run('pwd')
    expect(next.stdout).toBe(`${workdir}\n`)
    expect(next.note).toContain('was deleted')
  })

  test('that is the workdir itself is reported too; in a sandbox it is held in place', async () => {
    const { run, workdir } = await openShells()
    const removed = await run(`rmdir ${workdir}`)
    if (isSandboxed) {
      expect(removed.stderr).toMatch(/busy|Read-only/)
      expect((await run('pwd')).stdout).toBe(`${workdir}\n`)
    } else {
      expect(removed.note).toContain('was deleted')
      expect((await run(`mkdir ${workdir}; cd ${workdir}; pwd`)).stdout).toBe(`${workdir}\n`)
    }
  })
})

test('a working directory that was entered by a symbolic link is reported by that name', async () => {
  const { run, workdir } = await openShells()
  await mkdir(join(workdir, 'real'), { recursive: true })
  await symlink('real', join(workdir, 'link'))
  expect(await run('cd link')).toMatchObject({ cwd: join(workdir, 'link') })
})

test('restart kills what runs and forgets the state', async () => {
  const { run, shell, workdir } = await openShells()
  await run('mkdir sub; cd sub; export A=1')
  const started = Promise.withResolvers<void>()
  const running = run('echo started; sleep 20', { onOutput: () => started.resolve() })
  await started.promise
  await shell.restart()
  expect(await running).toMatchObject({ interrupted: true, exitCode: 137 })
  expect(await run('echo "[$A]"; pwd')).toMatchObject({ stdout: `[]\n${workdir}\n` })
})

test('a command whose output pipes cannot be opened again keeps its result, and the next command has new ones', async () => {
  const { run } = await openShells()
  // As without a free descriptor. In the sandbox the name cannot be removed.
  const remove = 'out=$(readlink /proc/$$/fd/1); case $out in */stdout-*) rm -f "$out" 2>&-;; esac'
  expect(await run(`${remove}; echo one`)).toMatchObject({ exitCode: 0, stdout: 'one\n' })
  expect(await run('echo two', { timeout: 60 })).toMatchObject({ exitCode: 0, stdout: 'two\n' })
  expect(await run(`sleep 0.3 & ${remove}; echo three`)).toMatchObject({ exitCode: 0, stdout: 'three\n' })
  expect(await run('echo four', { timeout: 60 })).toMatchObject({ exitCode: 0, stdout: 'four\n' })
})

test('restart keeps its place among the commands', async () => {
  const { run, shell } = await openShells()
  await run('x=1')
  const [, after] = await Promise.all([shell.restart(), run('echo "[$x]"')])
  expect(after.stdout).toBe('[]\n')
})

describe('a state outlives its shell', () => {
  const CHANGE =
    'mkdir -p sub; cd sub; export A="x\ny"; f() { echo "f $1"; }; alias g="echo g"; set -o noglob +o braceexpand; shopt -s dotglob; shopt -u progcomp'
  const LOOK = 'echo "$A"; f 1; g; echo *; basename "$PWD"; echo {a,b}; shopt -p dotglob progcomp || :'
  const SEEN = 'x\ny\nf 1\ng\n*\nsub\n{a,b}\nshopt -s dotglob\nshopt -u progcomp\n'

  test('that was closed for being idle', async () => {
    const { run, conversationId } = await openShells({ limits: { idleMs: 30 } })
    await run(CHANGE)
    await eventually(() => processesOf(conversationId) === 0)
    const next = await run(LOOK)
    expect(next.stdout).toBe(SEEN)
    expect(next.note).toMatch(/was restarted/)
  })

  test('that ended with the server', async () => {
    const { run, shells, reopen } = await openShells()
    await run(CHANGE)
    await shells.close()
    expect((await runIn(reopen().get('agent'), LOOK)).stdout).toBe(SEEN)
  })

  test('unless its session was closed', async () => {
    const { run, shell, shells, workdir } = await openShells()
    await run(CHANGE)
    await shell.close()
    expect((await runIn(shells.get('agent'), 'echo "[$A]"; pwd')).stdout).toBe(`[]\n${workdir}\n`)
  })

  test('unless it has processes: such a shell is never idle', async () => {
    const { run } = await openShells({ limits: { idleMs: 20 } })
    const { backgroundPid } = await run('x=kept; sleep 1000 >/dev/null 2>&1 &')
    // Others, which became idle later, are closed meanwhile.
    for (let times = 0; times < 3; times++) {
      const other = await openShells({ limits: { idleMs: 20 } })
      await other.run('true')
      await eventually(() => processesOf(other.conversationId) === 0)
    }
    expect((await run(`echo $x; kill ${backgroundPid}`)).stdout).toBe('kept\n')
  })
})
