import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { COMMAND_NAMES } from '../../src/cli/command-line/commands.ts'
import { helpOf } from '../../src/cli/command-line/help.ts'
import { completionScript } from '../../src/cli/completion/completion.ts'

/** Completes the last word of a command line in a real bash. */
function complete(...words: string[]): string[] {
  const script = `${completionScript('bash')}
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _agent_server
    printf '%s\\n' "\${COMPREPLY[@]}"`
  const output = execFileSync('bash', ['-c', script, 'bash', 'agent-server', ...words], { encoding: 'utf8', cwd: '/' })
  return output.trim().split('\n')
}

describe('bash completes', () => {
  test.each([
    ['commands', ['se'], ['sessions', 'serve']],
    ['options without a command', ['--no'], ['--no-tui']],
    ['options of a command', ['serve', '--p'], ['--port']],
    ['options of a command after others', ['serve', '--port', '1', '--h'], ['--host', '--help']],
    ['values', ['-p', '--output-format', 'j'], ['json']],
    ['words of a command', ['sessions', 'e'], ['export']],
    ['commands to explain', ['help', 'dem'], ['demo']],
    ['shells', ['completion', ''], ['bash', 'zsh', 'fish']],
    ['files', ['-p', '--settings', '/etc/host'], expect.arrayContaining(['/etc/hosts'])],
    ['directories', ['--cwd', '/us'], ['/usr']],
    ['nothing for a value that only the user knows', ['--model', ''], ['']],
  ])('%s', (_, words, expected) => {
    expect(complete(...words)).toEqual(expected)
  })
})

const isInstalled = (shell: string) => spawnSync(shell, ['--version']).status === 0

test.each(['bash', 'zsh', 'fish'] as const)('%s accepts its script', (shell) => {
  const script = completionScript(shell)
  for (const name of COMMAND_NAMES) expect(script).toContain(name)
  if (!isInstalled(shell)) return
  const { status, stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

test.each([undefined, ...COMMAND_NAMES])('the help of %s fits into 80 columns', (command) => {
  const lines = helpOf(command).split('\n')
  expect(lines.filter((line) => line.length > 80)).toEqual([])
})
