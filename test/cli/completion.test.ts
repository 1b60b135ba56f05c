import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { COMMAND_NAMES } from '../../src/cli/command-line/commands.ts'
import { helpOf } from '../../src/cli/command-line/help.ts'
import { completionScript } from '../../src/cli/completion/completion.ts'

// fish writes into it.
const home = mkdtempSync(join(tmpdir(), 'agent-server-completion-'))
afterAll(() => rmSync(home, { recursive: true }))

/** Each completes the last word of a command line in a real shell, and returns what that offers. */
const SHELLS = {
  bash(words: readonly string[]) {
    const script = `${completionScript('bash')}
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _agent_server
      printf '%s\\n' "\${COMPREPLY[@]}"`
    return run('bash', ['-c', script, 'bash', ...words])
  },
  /** An interactive shell in a terminal of its own: completion functions work in no other. */
  zsh(words: readonly string[]) {
    const capture = join(import.meta.dirname, 'support/complete.zsh')
    const offered = run('zsh', ['-f', capture, completionScript('zsh'), words.join(' ')])
    return offered.flatMap((line) => /<(.*)>/.exec(line)?.[1] ?? [])
  },
  fish(words: readonly string[]) {
    const script = `${completionScript('fish')}\ncomplete -C '${words.join(' ')}'`
    return run('fish', ['--no-config', '-c', script]).map((line) => line.split('\t')[0]!)
  },
}

const run = (shell: string, args: readonly string[]) =>
  execFileSync(shell, args, {
    encoding: 'utf8',
    cwd: '/',
    env: { PATH: process.env['PATH'], HOME: home, TERM: 'dumb' },
  })
    .trim()
    .split('\n')
    .filter(Boolean)

const CASES: readonly [string, readonly string[], readonly string[]][] = [
  ['commands', ['se'], ['sessions', 'serve']],
  ['options without a command', ['--no'], ['--no-tui']],
  ['options of a command', ['serve', '--p'], ['--port']],
  ['options of a command after others', ['serve', '--port', '1', '--h'], ['--host', '--help']],
  ['options after a value', ['--model', 'gpt', '--auto'], ['--autoresume']],
  ['values', ['-p', '--output-format', 'j'], ['json']],
  ['words of a command', ['sessions', 'e'], ['export']],
  ['nothing for an id', ['sessions', 'export', ''], []],
  ['commands to explain', ['help', 'dem'], ['demo']],
  ['shells', ['completion', ''], ['bash', 'zsh', 'fish']],
  ['nothing for a value that only the user knows', ['--model', ''], []],
]

describe.each(['bash', 'zsh', 'fish'] as const)('%s completes', (shell) => {
  test.for(CASES)('%s', ([, words, expected]) => {
    const offered = SHELLS[shell](['agent-server', ...words])
    expect(new Set(offered)).toEqual(new Set(expected))
  })

  test('files and directories', () => {
    const [file] = SHELLS[shell](['agent-server', '-p', '--settings', '/etc/hostn'])
    expect(file).toMatch(/^(\/etc\/)?hostname$/)
    const [directory] = SHELLS[shell](['agent-server', '--cwd', '/us'])
    expect(directory).toMatch(/^\/?usr\/?$/)
  })
})

test.each(['bash', 'zsh', 'fish'] as const)('the script of %s has each command', (shell) => {
  const script = completionScript(shell)
  for (const name of COMMAND_NAMES) expect(script).toContain(name)
})

test.each([undefined, ...COMMAND_NAMES])('the help of %s fits into 80 columns', (command) => {
  const lines = helpOf(command).split('\n')
  expect(lines.filter((line) => line.length > 80)).toEqual([])
})
