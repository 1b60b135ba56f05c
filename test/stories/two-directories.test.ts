/** Two chats of one person, open in two directories at once: neither command, interruption, commit nor name goes to the other. */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { KEYS, Terminal } from '../cli/chat/support/terminal.ts'
import { runCommand } from '../support/command.ts'
import { commandLine } from '../support/server.ts'

const BEGINNING = 'data: {"choices":[{"index":0,"delta":{"content":"I think"}}]}\n\n'
const COMMIT = 'git commit -q --allow-empty -m One && git log -1 --format="made by %an"'

let home: string
let model: ScriptedModel
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'two-directories-')))
  await writeFile(join(home, '.gitconfig'), '[user]\n\tname = Ada\n\temail = ada@example.com\n')
  for (const name of ['first', 'second']) {
    await mkdir(join(home, name))
    execFileSync('git', ['init', '-q'], { cwd: join(home, name) })
  }
  execFileSync('git', ['config', 'user.name', 'Ada at work'], { cwd: join(home, 'second') })
  model = await startScriptedModel({
    replies: [
      {
        when: 'Commit',
        turns: [{ calls: [{ name: 'Bash', arguments: { command: COMMIT } }] }, { text: 'Committed.' }],
      },
      { when: 'Ponder', turns: [{ raw: [BEGINNING], hang: true }] },
      { turns: [{ text: 'Hello.' }] },
    ],
  })
})
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

const env = () => ({
  HOME: home,
  OPENHANDS_DATA_DIR: join(home, 'data'),
  LLM_MODEL: 'scripted',
  LLM_BASE_URL: model.baseUrl,
  LLM_API_KEY: 'sk-test',
})
const chatIn = (name: string, ...options: string[]) =>
  new Terminal(commandLine(['chat', ...options]), { env: env(), cwd: join(home, name) })
const command = (name: string, ...args: string[]) => runCommand(args, { env: env(), cwd: join(home, name) })

test('two chats in two directories have their own conversation, run, author and name', async () => {
  await using first = chatIn('first', '--permission-mode', 'bypass')
  await using second = chatIn('second', '--permission-mode', 'bypass')
  const both = [first, second]
  for (const chat of both) await chat.shows('/help lists')

  await first.say('Commit the first')
  await second.say('Commit the second')
  await first.shows('made by Ada\n')
  await second.shows('made by Ada at work\n')
  for (const chat of both) {
    await chat.shows('Committed.')
    await chat.say('Ponder')
    await chat.shows('I think')
  }

  first.press(KEYS.escape)
  await first.shows('Interrupted.')
  await first.say('Go on.')
  await first.shows('Hello.')
  expect(model.requests.at(-1)!.text).toContain('I think')
  expect(second.text).toContain('Working')
  expect(second.text).not.toContain('Interrupted.')

  const rows = (await command('first', 'sessions', 'list')).stdout.split('\n').filter(Boolean)
  const idOf = (name: string) => rows.find((row) => row.endsWith(name))!.split(' ')[0]!
  const [ofFirst, ofSecond] = [idOf('Commit the first'), idOf('Commit the second')]
  for (const [name, id] of [
    ['first', ofFirst],
    ['second', ofSecond],
  ] as const)
    expect(await command(name, '-p', '-c', '--permission-mode', 'bypass', 'Hello'), name).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`conversation ${id} is open in a chat`),
    })

  second.press(KEYS.escape)
  await second.shows('Interrupted.')
  second.press(KEYS.ctrlD)
  await second.ended()
  const resumed = await command('second', '-p', '-c', '--permission-mode', 'plan', 'Hello')
  expect(resumed.stdout, resumed.stderr).toBe('Hello.\n')
  expect(resumed.stderr).toContain(`resumed conversation ${ofSecond} in ${join(home, 'second')}`)
  expect((await command('second', 'sessions', 'rename', ofSecond.slice(-12), 'Other')).code).toBe(0)

  await first.say('/status')
  await first.shows(/Title +Commit the first\n/)
  await first.shows(/Permissions +bypass/)
  first.press(KEYS.ctrlD)
  await first.ended()
})
