import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { isSandboxed, openShells, runIn } from './shell-fixture.ts'
import { launcherOf } from '../support/launcher.ts'

describe('the environment of a shell', () => {
  test('is what the allow-list passes on, and says that nobody is at a terminal', () => {
    const server = { PATH: '/bin', HOME: '/h', LC_ALL: 'C', TZ: 'UTC', TERM: 'xterm', AWS_SECRET_ACCESS_KEY: 'x' }
    const env = HostEnvironment.from({ ...server, OPENHANDS_MASTER_KEY: 'k', LLM_API_KEY: 'k' }).variables
    expect(env).toMatchObject({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', TZ: 'UTC' })
    expect(env).toMatchObject({ TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0' })
    expect(Object.keys(env).filter((name) => /AWS|OPENHANDS|LLM/.test(name))).toEqual([])
  })

  test('takes marks of the server and no other variable', () => {
    const env = HostEnvironment.from({})
    expect(env.marked({ AGENT_SERVER_SHELL: 'a/b' }).variables).toMatchObject({ AGENT_SERVER_SHELL: 'a/b' })
    for (const name of ['LD_PRELOAD', 'NODE_OPTIONS', 'PATH', 'MINE'])
      expect(() => env.marked({ [name]: '1' })).toThrow(`${name} is not a mark`)
  })

  test('is all that a command sees', async () => {
    const { run } = await openShells({
      env: HostEnvironment.from({ PATH: process.env['PATH'], TZ: 'UTC', ONLY: 'this' }),
    })
    const names = (await run('env')).stdout.split('\n').flatMap((line) => line.split('=')[0] || [])
    const marks = ['AGENT_SERVER_SHELL', 'AGENT_SERVER_STATE_DIR']
    const ofSandbox = isSandboxed ? ['HOME', 'TMPDIR'] : []
    const unattended = Object.keys(HostEnvironment.from({}).variables)
    expect(names.sort()).toEqual([...marks, ...ofSandbox, ...unattended, 'TZ', 'PWD', 'SHLVL', '_'].sort())
  })
})

describe('secrets', () => {
  test('are in the environment of commands, always the current ones, and never in the saved state', async () => {
    let secrets: Record<string, string> = { TOKEN: "s3cret'value" }
    const { run, shells, outputDir } = await openShells({ secretsEnv: () => secrets })
    expect((await run('sh -c \'echo "$TOKEN"\'; export A=1')).stdout).toBe("s3cret'value\n")
    secrets = { TOKEN: 'newer' }
    expect((await run('echo $TOKEN')).stdout).toBe('newer\n')
    secrets = {}
    expect((await run('echo "[$TOKEN]"')).stdout).toBe('[]\n')
    secrets = { TOKEN: 's3cret-again' }
    await run('true')
    await shells.close()
    const state = await readFile(join(outputDir, '../state/agent/state'), 'utf8')
    expect(state).toContain('declare -x A="1"')
    expect(state).not.toMatch(/TOKEN|s3cret|newer/)
  })
})

describe('sessions', () => {
  test('each have a separate state', async () => {
    const { shells, run } = await openShells()
    await run('x=agent; mkdir -p a; cd a')
    const other = shells.get('other')
    expect(shells.get('other')).toBe(other)
    expect((await runIn(other, 'echo "[$x]"; basename $PWD')).stdout).toBe('[]\nworkdir\n')
  })

  test('are bounded in number, and a closed one makes room', async () => {
    const { shells, shell } = await openShells({ limits: { maxSessions: 2 } })
    shells.get('two')
    expect(() => shells.get('three')).toThrow(/at most 2/)
    await shell.close()
    expect(shells.get('three').id).toBe('three')
  })

  test('that are discarded execute nothing more; those whose state is kept end by themselves', async () => {
    for (const [state, names] of [
      ['kept', ['last-word']],
      ['discarded', []],
    ] as const) {
      const { shells, run, workdir } = await openShells()
      await run(`trap 'echo ran > last-word' EXIT; (trap '' HUP TERM; sleep 1000 &)`)
      await shells.close(state)
      expect(await readdir(workdir), state).toEqual(names)
    }
  })

  test.each(['', '..', '.hidden', 'a/b', 'a b', 'x'.repeat(65), 'a\0'])('are not called %j', async (id) => {
    const { shells } = await openShells()
    expect(() => shells.get(id)).toThrow(/session id/)
  })
})

describe('a launcher', () => {
  test('decides how the shell is started', async () => {
    const launcher = launcherOf((argv) => ['env', 'WRAPPED=yes', ...argv])
    const { run } = await openShells({ launcher })
    expect((await run('echo $WRAPPED')).stdout).toBe('yes\n')
  })

  test('that cannot start one makes the command reject, saying why; the next tries again', async () => {
    let argvOf: (argv: readonly string[]) => readonly string[] = () => [
      'sh',
      '-c',
      'echo no namespaces here >&2; exit 1',
    ]
    const { run } = await openShells({ launcher: launcherOf((argv) => argvOf(argv)) })
    await expect(run('true')).rejects.toThrow(/did not start: no namespaces here/)
    argvOf = () => ['/no/such/file']
    await expect(run('true')).rejects.toThrow(/did not start.*ENOENT/)
    argvOf = (argv) => argv
    expect((await run('echo up')).stdout).toBe('up\n')
  })
})

describe('a program', () => {
  const start = async (argv: readonly string[], variables: Record<string, string>) => {
    const { shells, conversationId } = await openShells()
    const program = await shells.startProgram({ name: 'odd', argv, variables })
    return { output: await text(program.stdout), program, conversationId }
  }

  test('gets its variables and arguments as they are', async () => {
    const variables = {
      QUOTED: `it's "$HOME" \`id\` \\`,
      LINES: 'one\ntwo\n\n',
      EMPTY: '',
      CDPATH: '/',
      WORDS: "'; exit 1; '",
    }
    const argv = ['sh', '-c', 'printf "%s\\0" "$@"; env -0', "it's", 'a\nb', '', '$HOME']
    const { output } = await start(argv, variables)
    const fields = output.split('\0')
    expect(fields.slice(0, 3)).toEqual(['a\nb', '', '$HOME'])
    for (const [name, value] of Object.entries(variables)) expect(fields).toContain(`${name}=${value}`)
  })

  test('starts whatever its variables mean to a shell', async () => {
    const special = {
      UID: '7',
      PPID: '7',
      OPTIND: 'x',
      SHELLOPTS: 'noexec',
      BASH_ENV: '/nowhere',
      ENV: '/nowhere',
      PS4: '$(id)',
    }
    expect((await start(['echo', 'started'], special)).output).toBe('started\n')
  })

  test('has all its output read, also if nobody reads before it has exited', async () => {
    const { shells } = await openShells()
    const program = await shells.startProgram({ name: 'odd', argv: ['echo', 'started'], variables: {} })
    await program.ended
    expect(await text(program.stdout)).toBe('started\n')
  })

  test('cannot hide from the server, nor leave the home of its conversation', async () => {
    const forged = { AGENT_SERVER_SHELL: 'another/agent', AGENT_SERVER_STATE_DIR: '/nowhere', HOME: '/nowhere' }
    const { output, conversationId } = await start(['env', '-0'], forged)
    expect(output.split('\0')).toContain(`AGENT_SERVER_SHELL=${conversationId}/+odd`)
    expect(output).not.toContain('AGENT_SERVER_STATE_DIR=/nowhere')
    expect(output.includes('HOME=/nowhere')).toBe(!isSandboxed)
  })

  test.each([
    [{ 'A=B': 'x' }, ['true'], 'a name that is not one of a variable'],
    [{ A: 'x\0--bind' }, ['true'], 'A has a NUL'],
    [{}, ['true', 'x\0'], 'its command has a NUL'],
  ])('is not started with %j and %j', async (variables, argv, why) => {
    const { shells } = await openShells()
    await expect(shells.startProgram({ name: 'odd', argv, variables })).rejects.toThrow(why)
  })
})
