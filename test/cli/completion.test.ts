import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMMAND_NAMES } from '../../src/cli/command-line/subcommands.ts'
import { helpOf } from '../../src/cli/command-line/help.ts'
import { completionScript } from '../../src/cli/completion/completion.ts'

// fish writes into it.
const home = mkdtempSync(join(tmpdir(), 'agent-server-completion-'))
afterAll(() => rmSync(home, { recursive: true }))

type Lines = readonly (readonly string[])[]

/** Each completes the last words of command lines in a real shell, and returns what that offers for each. */
const SHELLS = {
  bash: (lines: Lines) =>
    lines.map((words) => {
      const script = `${completionScript('bash')}
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _agent_server
      printf '%s\\n' "\${COMPREPLY[@]}"`
      return run('bash', ['-c', script, 'bash', ...words])
    }),
  /** An interactive shell in a terminal of its own, because completion functions work in no other: one for all lines. */
  zsh(lines: Lines) {
    const capture = join(import.meta.dirname, 'support/complete.zsh')
    const said = run('zsh', ['-f', capture, completionScript('zsh'), ...lines.map((words) => words.join(' '))])
    const offered = said.join('\n').split('@END@').slice(0, -1)
    return offered.map((text) => text.split('\n').flatMap((line) => /<(.*)>/.exec(line)?.[1] ?? []))
  },
  fish: (lines: Lines) =>
    lines.map((words) => {
      const script = `${completionScript('fish')}\ncomplete -C '${words.join(' ')}'`
      return run('fish', ['--no-config', '-c', script]).map((line) => line.split('\t')[0]!)
    }),
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

/** Files and directories. */
const PATHS: Lines = [
  ['-p', '--settings', '/etc/hostn'],
  ['--cwd', '/us'],
]

describe.each(['bash', 'zsh', 'fish'] as const)('%s completes', (shell) => {
  const lines = [...CASES.map(([, words]) => words), ...PATHS].map((words) => ['agent-server', ...words])
  let offered: readonly (readonly string[])[]
  beforeAll(() => void (offered = SHELLS[shell](lines)))

  test.for(CASES.map((each, at) => [each[0], at, each[2]] as const))('%s', ([, at, expected]) => {
    expect(new Set(offered[at])).toEqual(new Set(expected))
  })

  test('files and directories', () => {
    const [files, directories] = offered.slice(CASES.length)
    expect(files?.[0]).toMatch(/^(\/etc\/)?hostname$/)
    expect(directories?.[0]).toMatch(/^\/?usr\/?$/)
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
