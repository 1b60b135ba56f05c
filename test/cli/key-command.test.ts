/** `LLM_API_KEY_COMMAND`: where the printed key goes, and where it is not shown. And the environment of all that is started. */
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { personalEditor, readConfig } from '../../src/config/config.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { VENDORS } from '../../src/llm/endpoints/vendors.ts'
import { runCommand } from '../support/command.ts'
import { startServer } from '../support/server.ts'

let home: string
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'key-command-')))
})
afterAll(() => rm(home, { recursive: true, force: true }))

async function program(name: string, script: string): Promise<string> {
  const path = join(home, name)
  await writeFile(path, `#!/bin/bash\n${script}\n`)
  await chmod(path, 0o755)
  return path
}

/** Accepts one key, and answers with what it was told to say. */
const guardedModel = (accepted: string, say: string) =>
  startScriptedModel((request) => {
    const { headers } = request as unknown as { headers: Record<string, string> }
    return headers['authorization'] === `Bearer ${accepted}`
      ? { text: say }
      : { status: 401, error: { message: `refused: ${headers['authorization']}` } }
  })

test('a printed key is renewed once after a 401, goes to LLM_BASE_URL only, and is redacted', async () => {
  await using model = await guardedModel('printed-key-number-2', 'It is printed-key-number-1, or printed-key-number-2.')
  await using other = await guardedModel('nothing', 'Never.')
  const runs = join(home, 'runs')
  const path = await program('print-key', `echo >> ${runs}; echo printed-key-number-$(wc -l < ${runs})`)
  const env = {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY_COMMAND: JSON.stringify([path]),
    OPENHANDS_LOG_LLM_PAYLOADS: 'true',
    OPENHANDS_ISOLATION: 'none',
  }
  await using server = await startServer({ env })
  const run = async (llm_config?: object) => {
    const body = { llm_config: { num_retries: 0, ...llm_config }, initial_message: 'hello' }
    const { id } = (await server.call('POST', '/conversations', body)).body
    await server.call('POST', `/conversations/${id}/run`, { wait: true })
    return (await server.call('GET', `/conversations/${id}/events?limit=100`)).body.items as { type: string }[]
  }
  const ofType = (events: { type: string }[], type: string) => events.find((each) => each.type === type)
  const [first, second] = await Promise.all([run(), run()])
  for (const events of [first, second])
    expect(ofType(events, 'AssistantMessage')).toMatchObject({
      text: 'It is <secret:LLM_API_KEY_COMMAND>, or <secret:LLM_API_KEY_COMMAND>.',
    })
  expect((await readFile(runs, 'utf8')).length).toBe(2)
  expect(JSON.stringify([first, second]) + server.output()).not.toContain('printed-key')
  await run({ base_url: other.baseUrl })
  await run({ base_url: model.baseUrl, api_key: 'key-of-the-client' })
  const sent = (requests: readonly { readonly headers: object }[]) =>
    JSON.stringify(requests.map(({ headers }) => headers))
  expect(sent(other.requests)).not.toContain('printed-key')
  expect(sent(model.requests.slice(-1))).toContain('key-of-the-client')
  await server.restart('SIGTERM', { LLM_API_KEY_COMMAND: JSON.stringify(['bash', '-c', 'echo not now >&2; exit 4']) })
  expect(ofType(await run(), 'ErrorEvent')).toMatchObject({
    error_type: 'auth',
    message: 'The command of LLM_API_KEY_COMMAND gave no key: exit code 4: not now.',
  })
})

test('the command has the credentials of a cloud, which commands of agents do not have', async () => {
  await using model = await guardedModel('AKIDEXAMPLE+profile+us-west-2', 'It is there.')
  const env = {
    HOME: home,
    OPENHANDS_DATA_DIR: join(home, 'cloud'),
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY_COMMAND: JSON.stringify(['bash', '-c', 'echo "$AWS_ACCESS_KEY_ID+$AWS_PROFILE+$AWS_REGION"']),
    AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
    AWS_PROFILE: 'profile',
    AWS_REGION: 'us-west-2',
  }
  const answer = await runCommand(['-p', 'hello'], { env })
  expect(answer).toMatchObject({ code: 0, stdout: 'It is there.\n' })
  await using asking = await startScriptedModel({
    replies: [{ turns: [{ calls: [{ name: 'Bash', arguments: { command: 'env' } }] }, { text: 'Done.' }] }],
  })
  const options = ['-p', '--permission-mode', 'bypass', 'hello']
  expect(await runCommand(options, { env: { ...env, LLM_BASE_URL: asking.baseUrl } })).toMatchObject({ code: 0 })
  expect(asking.requests.at(-1)?.text).toContain('PATH=')
  expect(asking.requests.at(-1)?.text).not.toContain('AWS_')
})

test('doctor says where the key is from, and why a command gives none', async () => {
  await using model = await startScriptedModel({ replies: [] })
  const doctor = async (env: Record<string, string>) => {
    const common = {
      HOME: home,
      OPENHANDS_DATA_DIR: join(home, 'doctor'),
      LLM_MODEL: 'scripted',
      LLM_BASE_URL: model.baseUrl,
    }
    return (await runCommand(['doctor'], { cwd: home, env: { ...common, ...env } })).stdout
  }
  const [printed, failed] = await Promise.all([
    doctor({ LLM_API_KEY_COMMAND: '["echo","a-printed-key"]' }),
    doctor({ LLM_API_KEY_COMMAND: '["false"]' }),
  ])
  expect(printed).toContain('has scripted; the key is from LLM_API_KEY_COMMAND\n')
  expect(failed).toMatch(/fail +model +The command of LLM_API_KEY_COMMAND gave no key: exit code 1/)
})

const REFUSED = [
  ['gcloud auth print-access-token', 'give a JSON array of texts, such as ["gcloud", "auth", "print-access-token"]'],
  ['[]', 'name a program'],
  ['["./print-key"]', 'name the program by an absolute path'],
  ['["~/print-key"]', 'name the program by an absolute path'],
] as const

test.each(REFUSED)('a configuration with LLM_API_KEY_COMMAND=%s is refused', (command, message) => {
  const settings = { OPENHANDS_MASTER_KEY: 'test-master-key-0123456789', OPENHANDS_DATA_DIR: join(home, 'refused') }
  expect(() => readConfig({ ...settings, LLM_API_KEY_COMMAND: command })).toThrow(
    expect.objectContaining({ name: 'ConfigError', message: expect.stringContaining(message) }),
  )
})

test('serve ends with the reason why it refuses LLM_API_KEY_COMMAND', async () => {
  const [[command, message]] = REFUSED
  const env = { HOME: home, OPENHANDS_MASTER_KEY: 'test-master-key-0123456789', LLM_API_KEY_COMMAND: command }
  const { code, stderr, stdout } = await runCommand(['serve'], { cwd: home, env })
  expect([code, stdout + stderr]).toEqual([2, expect.stringContaining(message)])
})

/** All keys that a person can have in the environment. */
const KEYS = Object.fromEntries(
  [
    ...VENDORS.flatMap(({ keyVariables }) => keyVariables),
    'OPENHANDS_MASTER_KEY',
    'OPENHANDS_SECRET_KEY',
    'TAVILY_API_KEY',
  ].map((name) => [name, `secret-value-of-${name}`]),
)

test('no program that is started has a key in its environment', async () => {
  const seen = join(home, 'seen')
  const project = join(home, 'project')
  await Promise.all([mkdir(seen), mkdir(project)])
  const dumping = (name: string, then = '') => program(name, `env > ${seen}/${name}.$$\n${then}`)
  const [printer, server] = await Promise.all([dumping('key-command', 'echo a-printed-key'), dumping('mcp-program')])
  const [hook] = await Promise.all([dumping('hook'), dumping('git', 'exec /usr/bin/git "$@"'), dumping('rg', 'exit 1')])
  const calls = [
    { name: 'Bash', arguments: { command: `env > ${seen}/bash` } },
    { name: 'Grep', arguments: { pattern: 'nothing', path: project } },
  ]
  await using model = await startScriptedModel({ replies: [{ turns: [{ calls }, { text: 'Done.' }] }] })
  const settings = {
    model: 'scripted',
    base_url: model.baseUrl,
    api_key_command: [printer],
    tools: ['Bash', 'Grep'],
    hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: hook }] }] },
    mcp: { mcpServers: { one: { command: server, args: [] } } },
  }
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings))
  const env = {
    ...KEYS,
    HOME: home,
    OPENHANDS_DATA_DIR: join(home, 'data'),
    OPENHANDS_ISOLATION: 'none',
    PATH: `${home}:${process.env['PATH']}`,
  }
  const args = ['-p', '--settings', join(home, 'settings.json'), '--permission-mode', 'bypass', 'hello']
  const { stdout, stderr } = await runCommand(args, { cwd: project, env })
  expect(stdout, stderr).toBe('Done.\n')
  // Git says who the person is to a sandbox only.
  const sandboxed = await runCommand(args, { cwd: project, env: { ...env, OPENHANDS_ISOLATION: 'bubblewrap' } })
  expect(sandboxed.stdout, sandboxed.stderr).toBe('Done.\n')
  expect(model.requests.at(-1)?.headers.authorization).toBe('Bearer a-printed-key')
  const files = await readdir(seen)
  const started = new Set(files.map((name) => name.split('.')[0]))
  expect(started).toEqual(new Set(['bash', 'git', 'hook', 'key-command', 'mcp-program', 'rg']))
  for (const name of files) {
    const text = await readFile(join(seen, name), 'utf8')
    expect(text, name).toContain('PATH=')
    expect(text, name).not.toContain('secret-value-of')
  }
})

test('a command that is named without a directory is not a program of the project, which agents can write', async () => {
  await using model = await guardedModel('printed-by-the-person', 'Hello.')
  const own = join(home, 'own-bin')
  const project = join(home, 'with-programs')
  const [packages, environment] = [join(project, 'node_modules/.bin'), join(project, '.venv/bin')]
  for (const directory of [own, packages, environment]) await mkdir(directory, { recursive: true })
  for (const directory of [packages, environment])
    await program(join(directory, 'print-it').slice(home.length + 1), 'echo printed-by-an-agent')
  await program('own-bin/print-it', 'echo printed-by-the-person')
  const env = {
    HOME: home,
    OPENHANDS_DATA_DIR: join(home, 'programs'),
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY_COMMAND: '["print-it"]',
  }
  const PATH = [packages, environment, own, process.env['PATH']].join(':')
  expect(await runCommand(['-p', 'hello'], { cwd: project, env: { ...env, PATH } })).toMatchObject({
    stdout: 'Hello.\n',
  })
  // In the home of the person, programs are the person's own.
  const atHome = {
    ...env,
    OPENHANDS_DATA_DIR: join(tmpdir(), 'programs-at-home'),
    PATH: `${own}:${process.env['PATH']}`,
  }
  expect(await runCommand(['-p', '--cwd', project, 'hello'], { cwd: home, env: atHome })).toMatchObject({
    stdout: 'Hello.\n',
  })
  await rm(atHome.OPENHANDS_DATA_DIR, { recursive: true })
})

test('an editor gets no key, and nothing else is started with the environment of the person', () => {
  const variables = { ...KEYS, LLM_API_KEY: 'secret-value-of-LLM_API_KEY', EDITOR: 'vi' }
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  try {
    const { env } = personalEditor()
    expect(env.variables).toMatchObject({ EDITOR: 'vi' })
    expect(JSON.stringify(env.variables)).not.toContain('secret-value-of')
  } finally {
    vi.unstubAllEnvs()
  }
  const src = join(import.meta.dirname, '../../src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const uses = files.flatMap((name) =>
    [...readFileSync(join(src, name), 'utf8').matchAll(/ofPerson\((.*)/g)].map(([, of]) => of),
  )
  expect(uses.filter((of) => !of?.startsWith('withoutKeys(process.env)') && !of?.startsWith('own:'))).toEqual([])
})
