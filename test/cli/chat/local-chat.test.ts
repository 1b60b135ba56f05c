/** The chat as a person starts it in a directory: the executable, in a terminal, with the agents of this machine. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { commandLine } from '../../support/server.ts'
import { KEYS, Terminal } from './support/terminal.ts'
import { quote } from '../../../src/shell/bash-script.ts'

let home: string
let model: ScriptedModel
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'local-chat-'))
  await mkdir(join(home, 'project'))
  model = await startScriptedModel({
    replies: [
      { when: 'look', turns: [{ calls: [{ name: 'Bash', arguments: { command: 'ls' } }] }, { text: 'I looked.' }] },
      {
        when: 'make it',
        turns: [{ calls: [{ name: 'Bash', arguments: { command: 'echo one > made.txt' } }] }, { text: 'I made it.' }],
      },
      { when: 'refuse', turns: [{ status: 401, error: { message: 'no such key' } }] },
      { turns: [{ text: 'Hello.' }] },
    ],
  })
})
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

/** `name` is that of the data directory. */
function start(name: string, env: Record<string, string> = {}, program = commandLine(['chat']), columns = 100) {
  const settings = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'scripted-model-key' }
  const directories = { OPENHANDS_DATA_DIR: join(home, name), CHAT: commandLine(['chat']).map(quote).join(' ') }
  return new Terminal(program, { env: { ...settings, ...directories, ...env }, cwd: join(home, 'project'), columns })
}

async function leave(terminal: Terminal): Promise<void> {
  terminal.press(KEYS.ctrlD)
  expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
}

test.concurrent.each([
  ['SIGHUP', 129],
  ['SIGTERM', 143],
  ['SIGQUIT', 131],
] as const)('%s at a question restores the terminal', async (signal, exitCode) => {
  await using terminal = start('asking', { LLM_BASE_URL: '', LLM_API_KEY: '', LLM_MODEL: 'gpt-4.1' })
  await terminal.shows('API key of OpenAI')
  process.kill(terminal.pid, signal)
  expect(await terminal.ended()).toEqual({ exitCode, isRestored: true })
})

test.concurrent('/new makes a conversation whose files can be taken back, as those of the first one', async () => {
  await using terminal = start('again', {}, commandLine(['chat', '--permission-mode', 'bypass']))
  await terminal.shows('/help lists')
  await terminal.say('hi')
  await terminal.shows('Hello.')
  await terminal.hides('Esc interrupts')
  await terminal.say('/new')
  await terminal.hides('Hello.')
  await terminal.say('make it')
  await terminal.shows('I made it.')
  await terminal.hides('Esc interrupts')
  await terminal.say('/undo')
  await terminal.shows(/Taken back: make it\n *1 file removed: made\.txt\./)
  await leave(terminal)
})

test.concurrent('the first answer must call a tool with --tool-choice required, and images are found where the chat was started', async () => {
  await writeFile(join(home, 'project', 'dot.png'), '\x89PNG\r\n', 'latin1')
  await using terminal = start(
    'tool',
    {},
    commandLine(['chat', '--tool-choice', 'required', '--permission-mode', 'bypass']),
  )
  await terminal.shows('/help lists')
  await terminal.say('look ./dot.png')
  await terminal.shows('Attached ./dot.png.')
  await terminal.shows('I looked.')
  const choices = model.requests
    .filter(({ text }) => text.includes('dot.png'))
    .map(({ body }) => body['tool_choice'] ?? 'auto')
    .slice(0, 2)
  expect(choices).toEqual(['required', 'auto'])
  await terminal.say('refuse this')
  await terminal.shows('check LLM_API_KEY.')
  await terminal.say('hi')
  await terminal.shows('Hello.')
  expect(terminal.text.match(/^> look .*/gm)).toHaveLength(1)
  await leave(terminal)
})

test.concurrent('remembers prompts, and not those that begin with a space', async () => {
  await using first = start('prompts')
  await first.shows('/help lists')
  await first.say('an earlier prompt')
  await first.shows('Hello.')
  first.press(' a secret', KEYS.enter)
  await first.shows('> a secret')
  await leave(first)
  await using second = start('prompts')
  await second.shows('/help lists')
  second.press('draft', KEYS.ctrlR, 'EARL')
  await second.shows('None has it.')
  second.press('\x7f\x7f\x7f\x7f', 'earl')
  await second.shows(/Search earlier prompts: earl▏\n {2}an earlier prompt\n/)
  second.press(KEYS.ctrlC)
  await second.hides('Search earlier')
  expect(second.text).toContain('draft')
  second.press(KEYS.ctrlR, 'earl', KEYS.enter)
  await second.shows('> an earlier prompt')
  await second.shows('Hello.')
  second.press(KEYS.up)
  expect(second.text).not.toContain('a secret')
  await second.say('')
  await second.shows('Hello.')
  await leave(second)
})

test.concurrent('continues when another chat ends that ran the agents', async () => {
  await using holder = start('holder')
  await holder.shows('/help lists')
  await using other = start('holder')
  await other.shows('/help lists')
  process.kill(holder.pid, 'SIGKILL')
  await other.say('hi')
  await other.shows('Hello.')
  await leave(other)
})

test.concurrent('the line that continues a chat is accepted, also with a mode that asks less', async () => {
  await using terminal = start('continued', {}, commandLine(['chat', '--permission-mode', 'accept_edits']), 300)
  await terminal.shows('/help lists')
  await terminal.say('hi')
  await terminal.shows('Hello.')
  await leave(terminal)
  const [, line = ''] = /Continue this conversation:\n(.*)/.exec(terminal.text) ?? []
  await using continued = start('continued', {}, ['bash', '-c', line])
  await continued.shows('> hi')
  await continued.shows('mode accept_edits')
  await leave(continued)
})

const PROMPT = /\nbash-\S+[#$]$/

describe.concurrent('a terminal', () => {
  test('gets its modes back while the chat is suspended, and the conversation below what was written then', async () => {
    await using terminal = start('suspended', {}, ['bash', '--norc', '-i'])
    await terminal.shows(PROMPT)
    terminal.press('eval "$CHAT"\r')
    await terminal.shows('/help lists')
    await terminal.say('hi')
    await terminal.shows('Hello.')
    terminal.press(KEYS.ctrlZ)
    await terminal.shows(/Stopped[\s\S]*\nbash-\S+[#$]$/)
    terminal.press('stty -a | grep -o "[-]*icanon"; echo written in between\r')
    await terminal.shows(/\nicanon\nwritten in between/)
    terminal.press('fg\r')
    await terminal.shows(/written in between[\s\S]*Hello\.[\s\S]*─\n *\n─/)
    await terminal.say('more')
    await terminal.shows(/> more\n[\s\S]*Hello\./)
    terminal.press(KEYS.ctrlD)
    await terminal.shows(/Continue this conversation:[\s\S]*\nbash-\S+[#$]$/)
    terminal.press('exit\r')
    expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
  })

  test('without job control continues after Ctrl+Z, and one that only prints lines is refused', async () => {
    // The first process of a session has no shell that could continue it.
    const alone = `exec ${commandLine(['chat']).map(quote).join(' ')}`
    await using orphan = start('orphan', {}, [
      'script',
      '--quiet',
      '--flush',
      '--return',
      '--command',
      alone,
      '/dev/null',
    ])
    await orphan.shows('/help lists')
    orphan.press(KEYS.ctrlZ)
    await orphan.shows(/\/help lists[\s\S]*\/help lists[\s\S]*tokens/)
    await orphan.say('still here')
    await orphan.shows('Hello.')
    await leave(orphan)
    await using dumb = start('dumb', { TERM: 'dumb' })
    await dumb.shows('this terminal (TERM=dumb) cannot show the chat')
    expect(await dumb.ended()).toMatchObject({ exitCode: 2 })
  })
})
