/** The first start with the executable, at the ports that servers of models have: on a network without any other machine. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { FirstStartHome } from '../cli/first-start/support/first-start-terminal.ts'
import { KEYS, Terminal } from '../cli/chat/support/terminal.ts'
import { runCommand } from '../support/command.ts'
import { commandLine } from '../support/server.ts'
import { quote } from '../../src/shell/bash-script.ts'

const shell = (args: readonly string[]): string => commandLine(args).map(quote).join(' ')

/** Its own loopback addresses, where nothing listens but what the script starts. */
const alone = (command: readonly string[]): [string, ...string[]] => [
  'bwrap',
  '--dev-bind',
  '/',
  '/',
  '--unshare-net',
  '--die-with-parent',
  ...command,
]

const WATCHED_PORTS = join(import.meta.dirname, '../cli/first-start/children/watched-ports.ts')

/** Waits until both listen, and ends them with the script. */
const SERVERS = `
trap 'kill $(jobs -p); wait' EXIT
${shell(['scripted-model', '--port', '11434'])} >/dev/null 2>&1 &
OPENHANDS_DATA_DIR="$HOME/served" ${shell(['serve', '--generate-key', '--scripted-model', '--port', '8000'])} >/dev/null 2>&1 &
until (exec 3<>/dev/tcp/127.0.0.1/11434) 2>/dev/null && (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done
`

test('Ollama is found at its port, an agent-server at that of vLLM is left out, and the chat begins with the model', async () => {
  using home = new FirstStartHome()
  const env = { HOME: home.path, OPENHANDS_DATA_DIR: join(home.path, 'data') }
  await using terminal = new Terminal(alone(['bash', '-c', `${SERVERS} ${shell(['chat'])}`]), {
    env,
    cwd: home.project,
  })
  await terminal.shows(/> Ollama on this machine +scripted\n +Anthropic +api\.anthropic\.com\n/)
  expect(terminal.text).not.toMatch(/vLLM|LM Studio/)
  terminal.press(KEYS.enter)
  await terminal.shows('> scripted')
  terminal.press(KEYS.enter)
  await terminal.shows('Keep this for the next time?')
  terminal.press(KEYS.enter)
  await terminal.shows('scripted · 0 tokens')
  terminal.press(KEYS.ctrlD)
  expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
  expect(home.settings).toEqual({ model: 'scripted', base_url: 'http://127.0.0.1:11434/v1' })
})

test('without a terminal nothing is asked and no port is tried: the error says what to set', async () => {
  using home = new FirstStartHome()
  const env = { HOME: home.path, OPENHANDS_DATA_DIR: join(home.path, 'data') }
  const [command, ...args] = alone([process.execPath, WATCHED_PORTS, ...commandLine(['-p', 'hello'])])
  const options = { env: { PATH: process.env['PATH'], ...env }, cwd: home.project }
  const answer = await promisify(execFile)(command, args, options)
  expect(answer.stdout).toBe('exit code 2, 0 connections\n')
  expect(answer.stderr).toMatch(
    /no model is set: give --model, set LLM_MODEL, or write model into \S+settings_sdk\.json\. Without -p, the chat asks for it\./,
  )
  const chat = await runCommand(['chat'], { env, cwd: home.project, input: '' })
  expect(chat).toMatchObject({ code: 2, stdout: '' })
  expect(chat.stderr).toContain('the chat needs a terminal; use --no-tui for a single answer.')
})
