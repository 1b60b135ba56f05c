/** Who resumes a conversation from the command line: it is the one of the directory, nobody is disturbed, and no mode is inherited. */
import { mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { KEYS, Terminal } from '../cli/chat/support/terminal.ts'
import { runCommand, startCommand } from '../support/command.ts'
import { commandLine } from '../support/server.ts'
import { until } from '../support/until.ts'

const BEGINNING = 'data: {"choices":[{"index":0,"delta":{"content":"I think"}}]}\n\n'

let home: string
let model: ScriptedModel
let asked = 0
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'resuming-')))
  const write = { name: 'Bash', arguments: { command: 'echo hi > out.txt' } }
  const options = [{ label: 'Yes' }, { label: 'No' }].map((each) => ({ ...each, description: '' }))
  const asked = [{ question: 'Shall I go on?', header: 'Go on', options, multiSelect: false }]
  const question = { name: 'AskUserQuestion', arguments: { questions: asked } }
  model = await startScriptedModel({
    replies: [
      { when: 'write', turns: [{ calls: [write] }, { text: 'I wrote.' }] },
      { when: 'ask me', turns: [{ calls: [question] }, { calls: [write] }, { text: 'I wrote.' }] },
      { when: 'hang', turns: [{ raw: [BEGINNING], hang: true }] },
      { turns: [{ text: 'Hello.' }] },
    ],
  })
})
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

type Place = {
  readonly env: Record<string, string>
  readonly at: (name: string) => Promise<string>
}

/** A person with an empty data directory, and with projects. */
function newPerson(): Place {
  const root = join(home, `person-${(asked += 1)}`)
  const at = async (name: string) => {
    await mkdir(join(root, name), { recursive: true })
    return join(root, name)
  }
  const settings = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test' }
  return { at, env: { ...settings, HOME: root, OPENHANDS_DATA_DIR: join(root, 'data') } }
}

const print = (env: Record<string, string>, cwd: string, ...args: string[]) => runCommand(['-p', ...args], { env, cwd })

const idIn = (stderr: string) => /conversation (\S+) in/.exec(stderr)![1]!

const openChat = (env: Record<string, string>, cwd: string, ...args: string[]) =>
  new Terminal(commandLine(['chat', ...args]), { env, cwd })

test('-c continues the latest conversation of the directory, and --all looks in every directory', async () => {
  const { env, at } = newPerson()
  const [proj, other] = [await at('proj'), await at('other')]
  const first = await print(env, proj, 'hello')
  const later = await print(env, other, 'hello')
  const again = await print(env, proj, '-c', 'hello')
  expect(again.stderr).toContain(`resumed conversation ${idIn(first.stderr)} in ${proj}`)
  const moved = await print(env, await at('third'), '-c', 'hello')
  expect(moved.stderr).toContain('there is no conversation to resume in this directory; this is a new one.')
  const all = await print(env, proj, '-c', '--all', 'hello')
  expect(all.stderr).toContain(`resumed conversation ${idIn(moved.stderr)}`)
  expect(idIn(moved.stderr)).not.toBe(idIn(later.stderr))
  expect(await print(env, await at('fourth'), '-c')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no conversation to continue in this directory'),
  })
})

test.each(['bypass', 'accept_edits'])('the mode %s is not inherited: it must be given again', async (mode) => {
  const { env, at } = newPerson()
  const proj = await at('proj')
  const first = await print(env, proj, '--permission-mode', mode, 'hello')
  expect(first.stderr).toContain(`warning: permission mode ${mode}: `)
  for (const option of [['-c'], ['-r', idIn(first.stderr)]])
    expect(await print(env, proj, ...option, 'write')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`Continue it with --permission-mode ${mode}, or with another mode.`),
    })
  const stricter = await print(env, proj, '-c', '--permission-mode', 'default', 'write')
  expect([stricter.code, stricter.stderr]).toEqual([3, expect.stringContaining('1 call was denied')])
  const again = await print(env, proj, '-c', 'hello')
  expect(again.stderr, 'an option of one command is not left in the conversation').toContain(
    `permission mode ${mode}: `,
  )
})

test('a conversation that is open in a chat is left alone until the chat is closed', async () => {
  const { env, at } = newPerson()
  const proj = await at('proj')
  await using chat = openChat(env, proj)
  await chat.shows('/help lists')
  chat.press('write', KEYS.enter)
  await chat.shows('echo hi > out.txt')
  for (const args of [['-c', 'hello'], ['-c', '--permission-mode', 'bypass', 'write'], ['-c']])
    expect(await print(env, proj, ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is open in a chat: close the chat first.'),
    })
  await using second = openChat(env, proj, '-c')
  await second.shows(/is open in a chat\. Continue it here, too\? \[y\/N\]/)
  second.press(KEYS.enter)
  expect((await second.ended()).exitCode).toBe(2)
  chat.press('y')
  await chat.shows('I wrote.')
  chat.press(KEYS.ctrlD)
  await chat.ended()
  expect((await print(env, proj, '-c', 'hello')).stdout).toBe('Hello.\n')
})

test('a message does not steer the run of another program, nor deny what waits for an answer', async () => {
  const { env, at } = newPerson()
  const proj = await at('proj')
  const before = model.requests.length
  const running = startCommand(['-p', 'hang'], { env, cwd: proj })
  await until('the model is asked', async () => model.requests.length > before)
  expect(await print(env, proj, '-c', 'hello')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has an active run'),
  })
  running.child.kill('SIGINT')
  await running.finished
  const asking = startCommand(['-p', '-c', '--ask', 'clients', 'write'], { env, cwd: proj })
  await asking.said('waits for a decision')
  asking.child.kill('SIGKILL')
  await asking.finished
  expect(await print(env, proj, '-c', 'hello')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('waits for an answer, which a message would deny'),
  })
  expect((await print(env, proj, '-c', '--permission-mode', 'default')).code).toBe(3)
})

test.each([
  ['bypass', 'plan', false],
  ['default', 'bypass', true],
])('a run that waits in the mode %s continues in the mode %s that a command gives', async (first, given, writes) => {
  const { env, at } = newPerson()
  const proj = await at('proj')
  const asking = startCommand(['-p', '--permission-mode', first, '--ask', 'clients', 'ask me'], { env, cwd: proj })
  await asking.said('Shall I go on?')
  asking.child.kill('SIGKILL')
  await asking.finished
  expect((await print(env, proj, '-c', '--permission-mode', given)).stdout).toBe('I wrote.\n')
  expect((await readdir(proj)).includes('out.txt')).toBe(writes)
})
