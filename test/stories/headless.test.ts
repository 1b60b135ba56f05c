/** The command line without the chat, as a script uses it: the executable, a scripted model, and a data directory. */
import { execFile } from 'node:child_process'
import { appendFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptFile, ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { pickTurn } from '../../src/llm/scripted/script.ts'
import type { CommandOptions } from '../support/command.ts'
import { runCommand, startCommand } from '../support/command.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { commandLine, KEY, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { quote } from '../../src/shell/bash-script.ts'
import { approve, requestsOf } from './requests.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]
const ERRAND = { description: 'x', prompt: 'run it', subagent_type: 'general-purpose', run_in_background: true }
const REFUSED = { description: 'x', prompt: 'refuse', subagent_type: 'general-purpose' }
const SCRIPT: Exclude<ScriptFile, readonly unknown[]> = {
  replies: [
    { when: 'it ran', turns: [{ text: 'I read that.' }] },
    { when: 'run it', turns: [{ calls: bash('sleep 0.5; echo hi > errand.txt') }, { text: 'It ran.' }] },
    { when: 'delegate', turns: [{ calls: [{ name: 'Task', arguments: ERRAND }] }, { text: 'It has begun.' }] },
    { when: 'plain', turns: [{ text: 'A plain answer.' }] },
    { when: 'only with JSON', turns: [{ text: '{"name": "a project"}' }] },
    { when: 'write', turns: [{ text: 'I write.', calls: bash('echo hi > out.txt') }, { text: 'I am done.' }] },
    { when: 'look', turns: [{ calls: bash('ls') }, { calls: bash('pwd') }, { text: 'I looked.' }] },
    { when: 'count', turns: [{ calls: bash("echo $$ > pid; trap '' INT TERM; sleep 60") }] },
    {
      when: 'echo',
      turns: [
        { calls: [{ name: 'mcp__odd__echo', arguments: { text: 'hi' } }] },
        { calls: [{ name: 'mcp__odd__ask', arguments: {} }] },
        { text: 'I called it.' },
      ],
    },
    { when: 'sleep', turns: [{ calls: bash('sleep 60') }, { text: 'I slept.' }] },
    {
      when: 'ask',
      turns: [
        {
          calls: [
            {
              name: 'AskUserQuestion',
              arguments: {
                questions: [
                  {
                    question: 'Which one?',
                    header: 'Choice',
                    options: [
                      { label: 'A', description: 'a' },
                      { label: 'B', description: 'b' },
                    ],
                    multiSelect: false,
                  },
                ],
              },
            },
          ],
        },
        { text: 'I chose A.' },
      ],
    },
    { when: 'hand on', turns: [{ calls: [{ name: 'Task', arguments: REFUSED }] }, { text: 'It could not.' }] },
    { when: 'hang', turns: [{ text: 'I think', hang: true }] },
    { when: 'refuse', turns: [{ status: 401, error: { message: 'no such key' } }] },
  ],
}

let home: string
let work: string
let model: ScriptedModel
let server: TestServer
const questions: ScriptedQuestion[] = []

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'agent-server-headless-'))
  work = join(home, 'project')
  await mkdir(work)
  const view = { name: 'FileEditor', arguments: { command: 'view', path: join(work, 'own-settings.json') } }
  SCRIPT.replies.push({ when: 'view', turns: [{ calls: [view] }, { text: 'I viewed it.' }] })
  model = await startScriptedModel((question) => {
    questions.push(question)
    return pickTurn(SCRIPT, question)
  })
  server = await startServer()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true })
})

const environment = () => ({ HOME: home, LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test' })

/** With the agents of a server that holds the data directory. */
const shared = (): CommandOptions => ({
  cwd: work,
  env: { ...environment(), OPENHANDS_DATA_DIR: server.dataDir, OPENHANDS_MASTER_KEY: KEY },
})
const print = (args: readonly string[], options: CommandOptions = {}) =>
  runCommand(['--no-tui', ...args], { ...shared(), ...options })
const printed = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('on a data directory that a server holds', () => {
  test('the answer is on stdout, and what happened on stderr; a denied call is exit code 3', async () => {
    const { code, stdout, stderr } = await print(['write', 'it'])
    expect(stdout).toBe('I am done.\n')
    expect(stderr).toMatch(/^(warning: )?commands run on this machine (in|without) a sandbox/)
    expect(stderr).toContain('Bash: echo hi > out.txt')
    expect(stderr).toMatch(/agent-server: 1 call was denied, because nobody can approve: Bash\. .*--permission-mode/)
    expect(code).toBe(3)
    expect(await readdir(work)).toEqual([])
  })

  test('an allowed call runs in the current directory; json is one object', async () => {
    const { code, stdout } = await print(['--allowed-tools', 'Bash(ls:*), Edit', '--output-format', 'json'], {
      input: 'write it\n',
    })
    expect(printed(stdout)).toEqual([
      expect.objectContaining({
        type: 'outcome',
        stop_reason: 'completed',
        is_error: false,
        exit_code: 0,
        final_text: 'I am done.',
        steps: 2,
      }),
    ])
    expect(code).toBe(0)
    expect(await readFile(join(work, 'out.txt'), 'utf8')).toBe('hi\n')
  })

  test('the answer is that which reads the results of subagents in the background', async () => {
    const { code, stdout } = await print(['--permission-mode', 'bypass', '--output-format', 'json', 'delegate'])
    expect(printed(stdout)).toMatchObject([{ final_text: 'I read that.', steps: 3, exit_code: 0 }])
    expect(code).toBe(0)
    expect(await readFile(join(work, 'errand.txt'), 'utf8')).toBe('hi\n')
    await rm(join(work, 'errand.txt'))
  })

  test('an error of a subagent is not one of the run', async () => {
    const { code, stdout } = await print(['--permission-mode', 'bypass', '--output-format', 'json', 'hand on'])
    const [outcome] = printed(stdout)
    expect([code, outcome]).toMatchObject([0, { final_text: 'It could not.', is_error: false, exit_code: 0 }])
    expect(outcome).not.toHaveProperty('error')
  })

  test('stream-json reads messages and prints events, turn after turn', async () => {
    const lines = [
      { role: 'user', content: 'plain' },
      { type: 'user', message: { role: 'user', content: 'ask me' } },
    ]
    const { code, stdout, stderr } = await print(
      ['--input-format', 'stream-json', '--output-format', 'stream-json', '--permission-mode', 'bypass'],
      { input: lines.map((line) => JSON.stringify(line)).join('\n') },
    )
    const events = printed(stdout)
    expect(events.filter(({ type }) => type === 'outcome').map((each) => each.final_text)).toEqual([
      'A plain answer.',
      'I chose A.',
    ])
    expect(events.find(({ type }) => type === 'RequestAnswered')).toMatchObject({
      kind: 'question',
      answer: { answers: { 'Which one?': [expect.stringContaining('Nobody can answer')] } },
    })
    expect(stderr).not.toContain('AskUserQuestion')
    expect(code).toBe(0)
  })

  test('required holds for the first turn, and a limit of steps is exit code 3', async () => {
    questions.length = 0
    const { code, stdout, stderr } = await print(['--tool-choice', 'required', '--max-steps', '2', 'look'])
    expect(questions.map(({ body }) => body['tool_choice'])).toEqual(['required', undefined])
    expect(stdout).toBe('')
    expect(stderr).toMatch(/stopped: max_steps .* Continue with --resume/)
    expect(code).toBe(3)
  })

  test('an error is one line and exit code 1', async () => {
    const { code, stdout, stderr } = await print(['refuse this'])
    expect(stdout).toBe('')
    expect(stderr.trim().split('\n').at(-1)).toMatch(/^agent-server: .*: check LLM_API_KEY\..*\(auth\)$/)
    expect(code).toBe(1)
  })

  test.each([
    ['a wrong line', ['--input-format', 'stream-json'], 'nonsense\n', /line 1 of stdin is not a message/],
    ['a prompt that is too large', [], 'x'.repeat(9 * 1024 * 1024), /the prompt is too large: the server accepts/],
    ['a rule that is none', ['--allowed-tools', '((('], 'plain', /--allowed-tools: "\(\(\(" is not a rule/],
    ['a directory of the system', ['--cwd', '/proc'], 'plain', /the directory of the agent \(--cwd\) is refused/],
    ['a model without end', ['--model', 'x'.repeat(600)], 'plain', /^agent-server: --model: /],
  ])('%s is exit code 2, and leaves no conversation', async (_, args, input, sentence) => {
    const ids = async () => (await server.call('GET', '/conversations')).body.items.map(({ id }: { id: string }) => id)
    const before = await ids()
    const { code, stderr } = await print(args, { input })
    expect(stderr).toMatch(sentence)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(code).toBe(2)
    expect(await ids()).toEqual(before)
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('%s interrupts the run', async (signal, expected) => {
    const { child, finished, said } = startCommand(['-p', '--permission-mode', 'bypass', 'sleep'], shared())
    await said('Bash: sleep 60')
    child.kill(signal)
    const { code, stderr } = await finished
    expect(stderr).toContain('interrupted. Continue with --resume')
    expect(code).toBe(expected)
    const [, id] = /conversation (\S+) in/.exec(stderr)!
    expect((await server.call('GET', `/conversations/${id}`)).body.status).toBe('paused')
  })

  test('a reader that is gone ends the run, which has then not succeeded', async () => {
    const { child, finished, said } = startCommand(['-p', '--output-format', 'stream-json', 'look'], shared())
    child.stdout!.destroy()
    const { code, stderr } = await finished
    await said('conversation ')
    expect(stderr.match(/agent-server: .*/g)).toEqual([
      'agent-server: the answer cannot be written: nobody reads it any more.',
    ])
    expect(code).toBe(141)
  })

  test.each([[['--help']], [['completion', 'zsh']], [['sessions', 'list']], [['key']]])(
    '%j ends like other programs when its reader is gone',
    async (args) => {
      const { child, finished } = startCommand(args, shared())
      child.stdout!.destroy()
      expect(await finished).toMatchObject({ code: 141, stderr: '' })
    },
  )

  test('the answer is written also if stderr is full', async () => {
    const { env, cwd } = shared()
    const program = commandLine(['-p', 'plain']).map(quote)
    const { stdout } = await promisify(execFile)('bash', ['-c', `${program.join(' ')} 2> /dev/full`], {
      cwd,
      env: { PATH: process.env['PATH'], ...env },
      timeout: PATIENCE_MS,
    })
    expect(stdout).toBe('A plain answer.\n')
  })

  test.each([
    ['an answer', ['-p', 'plain']],
    ['a list', ['sessions', 'list']],
    ['the key', ['key']],
    ['a help text', ['--help']],
    ['a completion script', ['completion', 'fish']],
  ])('%s that cannot be written is an error', async (_, args) => {
    const { env, cwd } = shared()
    const program = commandLine(args).map(quote)
    const script = `${program.join(' ')} > /dev/full`
    const finished = await promisify(execFile)('bash', ['-c', script], {
      cwd,
      env: { PATH: process.env['PATH'], ...env },
      timeout: PATIENCE_MS,
    }).catch((error: unknown) => error as { code: number; stderr: string })
    expect(finished.stderr).toMatch(/agent-server: the (answer|output) cannot be written \(ENOSPC\)\.\n$/)
    expect(finished).toMatchObject({ code: 1 })
  })

  test('connect drives the server by its URL, and never sends it the key of the model', async () => {
    const { env, cwd } = shared()
    const options = { cwd: cwd!, env: { ...env, OPENHANDS_DATA_DIR: join(home, 'unused') } }
    const refused = await runCommand(['connect', server.url, '-p', 'plain', '--api-key', 'a-wrong-key'], options)
    expect(refused.stderr).toMatch(/^agent-server: /)
    expect(refused.code).toBe(1)
    const at = ['--model', 'scripted', '--base-url', model.baseUrl]
    const unknown = await runCommand(['connect', server.url, '-p', ...at, 'refuse'], options)
    expect(unknown.stderr).toContain('check the key that the server has for the model.')
    const { code, stdout } = await runCommand(
      ['connect', server.url, '-p', '--model', 'scripted', '--base-url', model.baseUrl, 'plain'],
      options,
    )
    expect([code, stdout]).toEqual([0, 'A plain answer.\n'])
    expect((await server.call('GET', '/conversations?limit=1')).body.items[0].llm_config.api_key).toBeUndefined()
    expect(await readdir(home)).not.toContain('unused')
  })

  test('without a prompt a conversation continues where a killed command left it', async () => {
    const killed = startCommand(['-p', '--ask', 'clients', 'write it'], shared())
    await killed.said('waits for a decision')
    killed.child.kill('SIGKILL')
    const [, id = ''] = /^conversation (\S+) in /m.exec((await killed.finished).stderr) ?? []
    const asked = () => requestsOf(server.call, id, 'permission')
    const [{ request_id }] = await asked()
    const elsewhere = await print(['-r', id, '--cwd', home])
    expect(elsewhere).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--cwd and --add-dir cannot change anything while'),
    })
    const resumed = startCommand(['-p', '-r', id, '--ask', 'clients'], shared())
    await resumed.said('waits for a decision')
    await approve(server.call, id, request_id)
    expect(await resumed.finished).toMatchObject({ code: 0, stdout: 'I am done.\n' })
    expect(await asked()).toEqual([])
    const { code, stderr } = await print(['-r', id])
    expect([code, stderr]).toEqual([2, expect.stringContaining('there is nothing to continue')])
    const none = { ...shared(), env: { ...environment(), OPENHANDS_DATA_DIR: join(home, 'empty') } }
    expect((await print(['-c'], none)).stderr).toContain('there is no conversation to continue')
  })

  test('the commands of docs/cli.md do what the page says', async () => {
    const doc = await readFile(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')
    const blocks = [...doc.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block)
    expect(blocks.length).toBeGreaterThan(3)
    await writeFile(join(work, 'README.md'), 'a project\n')
    const program = commandLine([]).map(quote)
    const script = `set -e -o pipefail\nagent-server() { ${program.join(' ')} "$@"; }\n${blocks.join('\n')}`
    const { stdout } = await promisify(execFile)('bash', ['-c', script], {
      cwd: work,
      env: { PATH: process.env['PATH'], ...shared().env },
    })
    expect(stdout).toContain('A plain answer.')
  })

  test('sessions lists, shows, exports and deletes', async () => {
    const [listed] = printed((await runCommand(['sessions', 'list', '--json', '--limit', '1'], shared())).stdout)
    const shown = await runCommand(['sessions', 'show', listed.id], shared())
    expect(shown.stdout).toMatch(/^Conversation +\S+\n[^]*user: plain.*\n[^]*done: completed/)
    const events = printed((await runCommand(['sessions', 'export', listed.id], shared())).stdout)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    expect((await runCommand(['sessions', 'delete', listed.id], shared())).code).toBe(0)
    const gone = await runCommand(['sessions', 'show', listed.id], shared())
    expect(gone.stderr).toMatch(/^agent-server: .*\n$/)
    expect(gone.code).toBe(1)
  })
})

describe('without a server', () => {
  const alone = (): CommandOptions => ({ cwd: work, env: { ...environment(), OPENHANDS_DATA_DIR: join(home, 'own') } })

  test('autoresume continues the latest conversation with its whole history, over a torn tail', async () => {
    const first = await runCommand(['--no-tui', 'plain'], alone())
    expect([first.code, first.stdout]).toEqual([0, 'A plain answer.\n'])
    const [, id] = /conversation (\S+) in/.exec(first.stderr)!
    const log = (await readdir(join(home, 'own'), { recursive: true })).find((path) =>
      path.endsWith(`${id}/events.jsonl`),
    )
    await appendFile(join(home, 'own', log!), '{"seq":99,"type":"UserMess')
    questions.length = 0
    const second = await runCommand(['--no-tui', '--autoresume', 'plain again'], alone())
    expect([second.code, second.stdout]).toEqual([0, 'A plain answer.\n'])
    expect(second.stderr).toContain(`resumed conversation ${id}`)
    expect(questions[0]!.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
  })

  test('required is an option of one run: nothing of it is left after a kill', async () => {
    questions.length = 0
    const first = startCommand(['-p', '--tool-choice', 'required', 'hang'], alone())
    await vi.waitFor(() => expect(questions).toHaveLength(1), PATIENCE_MS)
    first.child.kill('SIGKILL')
    await first.finished
    await runCommand(['-p', '-c', 'plain'], alone())
    expect(questions.map(({ body }) => body['tool_choice'])).toEqual(['required', undefined])
  })

  test('a run continues when the process that runs the agents of both is killed', async () => {
    const args = ['-p', '--permission-mode', 'bypass', 'sleep']
    const holder = startCommand(args, alone())
    await holder.said('Bash: sleep 60')
    const other = startCommand(args, alone())
    await other.said('Bash: sleep 60')
    holder.child.kill('SIGKILL')
    const { code, stdout, stderr } = await other.finished
    expect(stderr).toContain('failed (interrupted)')
    expect([code, stdout]).toEqual([0, 'I slept.\n'])
  })

  test('a second signal ends the process and its commands at once', async () => {
    const env = { ...alone().env, OPENHANDS_ISOLATION: 'none' }
    const { child, finished, said } = startCommand(['-p', '--permission-mode', 'bypass', 'count'], { cwd: work, env })
    await said('Bash: echo')
    const pid = await vi.waitFor(
      async () => Number(await readFile(join(work, 'pid'), 'utf8')) || Promise.reject(),
      PATIENCE_MS,
    )
    child.kill('SIGINT')
    await said('interrupting')
    child.kill('SIGINT')
    expect((await finished).code).toBe(130)
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), PATIENCE_MS)
  })

  test('the agent has the tools of --mcp-config, in the short form and after a byte order mark; a form is declined', async () => {
    const odd = {
      command: process.execPath,
      args: [join(import.meta.dirname, '../mcp/children/odd-server.ts'), 'plain'],
    }
    await writeFile(join(home, 'mcp.json'), `\ufeff${JSON.stringify({ odd })}`)
    const args = ['-p', '--mcp-config', join(home, 'mcp.json'), '--permission-mode', 'bypass', 'echo']
    const env = { ...alone().env, OPENHANDS_ISOLATION: 'none' }
    const { code, stdout, stderr } = await runCommand(args, { cwd: work, env })
    expect(stderr).toMatch(/mcp__odd__echo: .*\nresult: /)
    expect(stderr).toContain('"action":"decline"')
    expect([code, stdout]).toEqual([0, 'I called it.\n'])
  })

  test.each([
    ['', alone],
    [', although another process runs the agents', shared],
  ])('the agent cannot view a settings file with a key%s', async (_, options) => {
    const path = join(work, 'own-settings.json')
    await writeFile(path, JSON.stringify({ api_key: 'sk-of-the-file', base_url: model.baseUrl }), { mode: 0o600 })
    const { stdout } = await runCommand(
      ['-p', '--settings', path, '--output-format', 'stream-json', '--permission-mode', 'bypass', 'view'],
      options(),
    )
    expect(printed(stdout).find(({ type }) => type === 'ToolResult').output).toMatch(/is not accessible to this tool/)
    expect(stdout).not.toContain('sk-of-the-file')
  })

  test('keys and settings can come from pipes, which can be read only once', async () => {
    const { OPENHANDS_DATA_DIR, LLM_BASE_URL } = alone().env!
    const program = commandLine(['-p']).map(quote)
    const settings = JSON.stringify({ model: 'scripted', base_url: LLM_BASE_URL })
    const script = `LLM_API_KEY_FILE=<(echo sk-of-a-pipe) ${program.join(' ')} --settings <(echo '${settings}') plain`
    const env = { PATH: process.env['PATH'], HOME: home, OPENHANDS_DATA_DIR }
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: work, env })
    expect(stdout).toBe('A plain answer.\n')
  })

  test('a .env of the current directory is not read, and options win over the environment and that over the file', async () => {
    await writeFile(join(work, '.env'), 'LLM_BASE_URL=http://127.0.0.1:9\nOPENHANDS_ISOLATION=nonsense\n')
    await mkdir(join(home, '.openhands'))
    const settings = { model: 'of-the-file', temperature: 0.5, reasoning_effort: null, colour: 'red' }
    await writeFile(join(home, '.openhands/settings_sdk.json'), JSON.stringify(settings))
    questions.length = 0
    const { stderr } = await runCommand(['-p', '--model', 'of-the-option', 'plain'], alone())
    await rm(join(work, '.env'))
    expect(stderr).toContain('settings_sdk.json: colour ignored')
    expect(questions[0]!.body).toMatchObject({ model: 'of-the-option', temperature: 0.5 })
  })
})

describe('wrong use is one line and exit code 2', () => {
  test.each([
    ['no model', ['-p', 'hi'], {}, /^agent-server: no model is set: give --model/],
    ['no key', ['-p', '-m', 'gpt-5', 'hi'], {}, /^agent-server: no key is set for gpt-5/],
    ['an endpoint that is no URL', ['-p', '-m', 'x', '--base-url', 'none', 'hi'], {}, /--base-url is not an http/],
    [
      'such an endpoint with the key of another one',
      ['-p', '-m', 'x', '--base-url', 'none', 'hi'],
      { LLM_BASE_URL: 'http://localhost:1', LLM_API_KEY: 'x' },
      /--base-url is not an http/,
    ],
    ['a blank model', ['-p', '-m', ' ', 'hi'], {}, /-m needs a value/],
    ['stdin alone, which is empty', ['-p', '-m', 'x', '--base-url', 'http://localhost:1', '-'], {}, /prompt is empty/],
    [
      'an empty prompt',
      ['-p', '-m', 'x', '--base-url', 'http://localhost:1'],
      {},
      /^agent-server: the prompt is empty/,
    ],
    ['no terminal for the chat', ['chat'], {}, /^agent-server: the chat needs a terminal/],
    ['a settings file that is missing', ['-p', '--settings', 'none.json', 'hi'], {}, /none\.json cannot be read/],
    ['a settings file that is a device', ['-p', '--settings', '/dev/zero', 'hi'], {}, /it is not a regular file/],
    ['a directory that does not exist', ['-p', '--cwd', 'none', 'hi'], {}, /none is not a directory/],
    ['no key for a server', ['connect', 'http://localhost:1', '-p', 'hi'], {}, /no key is set for http/],
  ])('%s', async (_, args, env, sentence) => {
    const cwd = await mkdtemp(join(tmpdir(), 'agent-server-headless-'))
    const { code, stdout, stderr } = await runCommand(args, { cwd, env: { HOME: cwd, ...env } })
    await rm(cwd, { recursive: true })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(sentence)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})
