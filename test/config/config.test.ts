import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { VARIABLES } from '../../src/config/variables.ts'
import { ensureWritable, readConfig } from '../../src/config/config.ts'
import { masterKeySource, ConfigError } from '../../src/config/environment.ts'
import { readDataDir } from '../../src/config/paths.ts'

const KEY = 'a-master-key-of-the-tests'

let home: string
const before = process.cwd()

// The environment and the working directory are what is under test: emptied for each test, and put back.
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'config-')))
  process.chdir(home)
  for (const name of [...Object.keys(VARIABLES).flatMap((name) => [name, `${name}_FILE`]), 'XDG_DATA_HOME'])
    vi.stubEnv(name, undefined)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  process.chdir(before)
  await rm(home, { recursive: true, force: true })
})

function setEnv(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
}

/** The sentence of the refusal. */
function refusal(variables: Record<string, string> = {}): string {
  setEnv(variables)
  try {
    readConfig()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }
  throw new Error('it was not refused')
}

test('with only a key, everything else has its default', () => {
  setEnv({ OPENHANDS_MASTER_KEY: KEY })
  const dataDir = join(homedir(), '.local/share/agent-server')
  expect(readConfig()).toMatchObject({
    host: '0.0.0.0',
    port: 8000,
    logLevel: 'INFO',
    dataDir: process.platform === 'darwin' ? expect.any(String) : dataDir,
    workdirBase: process.platform === 'darwin' ? expect.any(String) : join(dataDir, 'work'),
    workdirRoots: [],
    masterKeys: [KEY],
    secretKeys: [KEY],
    isolation: 'auto',
    corsOrigins: [],
    llmAllow: [],
    trustProxy: [],
    maxConcurrentRuns: 256,
    maxStreamsPerConversation: 500,
    maxBodyBytes: 8_388_608,
    maxOutputBytes: 30_000,
    streamBufferBytes: 8_388_608,
    logLlmPayloads: false,
    defaultLlm: {},
  })
})

test('every setting is read', () => {
  setEnv({
    OPENHANDS_MASTER_KEY: `${KEY}, the-old-key-of-the-tests`,
    OPENHANDS_SECRET_KEY: 'a-secret-key-of-the-tests',
    OPENHANDS_SERVER_HOST: '::1',
    OPENHANDS_SERVER_PORT: '0',
    OPENHANDS_LOG_LEVEL: 'debug',
    OPENHANDS_DATA_DIR: 'data',
    OPENHANDS_WORKDIR_BASE: '/srv/work/',
    OPENHANDS_WORKDIR_ROOTS: '/srv/a:/srv/b/../c',
    OPENHANDS_ISOLATION: 'none',
    OPENHANDS_SANDBOX_READABLE: '/opt/tools/:/srv/models',
    OPENHANDS_CORS_ORIGINS: 'https://app.example.com, http://localhost:5173',
    OPENHANDS_TRUST_PROXY: '127.0.0.1, 10.0.0.0/8,::1',
    OPENHANDS_MAX_CONCURRENT_RUNS: '3',
    OPENHANDS_MAX_STREAMS_PER_CONVERSATION: '5',
    OPENHANDS_MAX_BODY_BYTES: '2048',
    OPENHANDS_MAX_OUTPUT_BYTES: '1000',
    OPENHANDS_STREAM_BUFFER_BYTES: '65536',
    OPENHANDS_LOG_LLM_PAYLOADS: 'true',
    LLM_MODEL: 'm',
    LLM_API_KEY: 'k',
    LLM_BASE_URL: 'http://localhost:11434/v1',
    LLM_PROVIDER: 'anthropic',
  })
  expect(readConfig()).toMatchObject({
    host: '::1',
    port: 0,
    logLevel: 'DEBUG',
    dataDir: join(home, 'data'),
    workdirBase: '/srv/work',
    workdirRoots: ['/srv/a', '/srv/c'],
    sandboxReadable: ['/opt/tools', '/srv/models'],
    masterKeys: [KEY, 'the-old-key-of-the-tests'],
    secretKeys: ['a-secret-key-of-the-tests', KEY, 'the-old-key-of-the-tests'],
    corsOrigins: ['https://app.example.com', 'http://localhost:5173'],
    trustProxy: ['127.0.0.1', '10.0.0.0/8', '::1'],
    maxConcurrentRuns: 3,
    maxStreamsPerConversation: 5,
    maxBodyBytes: 2048,
    maxOutputBytes: 1000,
    streamBufferBytes: 65_536,
    logLlmPayloads: true,
    defaultLlm: { model: 'm', api_key: 'k', base_url: 'http://localhost:11434/v1', provider: 'anthropic' },
  })
})

test('a list of secret keys is tried in its order, then as one key, then the master keys', () => {
  setEnv({ OPENHANDS_MASTER_KEY: KEY, OPENHANDS_SECRET_KEY: 'new-secret-key, old-secret-key' })
  const whole = 'new-secret-key, old-secret-key'
  expect(readConfig().secretKeys).toEqual(['new-secret-key', 'old-secret-key', whole, KEY])
})

test('the network of conversations without a policy is the ceiling, unless it is set', () => {
  setEnv({ OPENHANDS_MASTER_KEY: KEY, OPENHANDS_NETWORK_CEILING: 'allowlist:a.example, *.b.example:443' })
  const ceiling = { mode: 'allowlist', allow: ['a.example', '*.b.example:443'] }
  expect(readConfig().network).toEqual({ default: ceiling, ceiling })
  setEnv({ OPENHANDS_NETWORK: 'none', OPENHANDS_NETWORK_PRIVATE_ALLOW: 'a.example=10.0.0.1:443' })
  expect(readConfig().network).toEqual({ default: { mode: 'none' }, ceiling })
  expect(readConfig().networkPrivateRules).toEqual([{ name: 'a.example', address: '10.0.0.1', prefix: 32, port: 443 }])
})

test.each<[name: string, variables: Record<string, string>]>([
  ['OPENHANDS_NETWORK', { OPENHANDS_NETWORK: 'closed' }],
  ['OPENHANDS_NETWORK', { OPENHANDS_NETWORK: 'allowlist:http://a.example' }],
  ['OPENHANDS_NETWORK', { OPENHANDS_NETWORK: 'open', OPENHANDS_NETWORK_CEILING: 'none' }],
  ['OPENHANDS_NETWORK_CEILING', { OPENHANDS_NETWORK_CEILING: 'none:a.example' }],
  ['OPENHANDS_NETWORK_PRIVATE_ALLOW', { OPENHANDS_NETWORK_PRIVATE_ALLOW: '127.0.0.1' }],
  ['OPENHANDS_NETWORK_PRIVATE_ALLOW', { OPENHANDS_NETWORK_PRIVATE_ALLOW: '169.254.169.254:80' }],
])('%s of %j is refused', (name, variables) => {
  expect(refusal({ OPENHANDS_MASTER_KEY: KEY, ...variables })).toMatch(new RegExp(`^${name}`))
})

describe('where a setting comes from', () => {
  test('the command line, then the environment, then .env, then the default', async () => {
    await writeFile(
      '.env',
      `OPENHANDS_MASTER_KEY=${KEY}\nOPENHANDS_SERVER_PORT=1\nOPENHANDS_SERVER_HOST=1.1.1.1\nLLM_MODEL="from .env"\n`,
    )
    setEnv({ OPENHANDS_SERVER_PORT: '2', OPENHANDS_SERVER_HOST: '2.2.2.2' })
    expect(readConfig({ OPENHANDS_SERVER_PORT: '3' })).toMatchObject({
      port: 3,
      host: '2.2.2.2',
      defaultLlm: { model: 'from .env' },
      logLevel: 'INFO',
    })
  })

  test('an empty value counts as unset: the next source is used', async () => {
    await writeFile('.env', `OPENHANDS_MASTER_KEY=${KEY}\nOPENHANDS_SERVER_PORT=\nLLM_MODEL=m\n`)
    setEnv({ OPENHANDS_MASTER_KEY: '', OPENHANDS_SERVER_HOST: '', LLM_MODEL: '', LLM_BASE_URL: '' })
    expect(readConfig()).toMatchObject({ masterKeys: [KEY], host: '0.0.0.0', port: 8000, defaultLlm: { model: 'm' } })
    expect(readConfig().defaultLlm).not.toHaveProperty('base_url')
  })

  test('the user data directory follows XDG_DATA_HOME', () => {
    setEnv({ OPENHANDS_MASTER_KEY: KEY, XDG_DATA_HOME: join(home, 'xdg') })
    if (process.platform !== 'darwin') expect(readConfig().dataDir).toBe(join(home, 'xdg/agent-server'))
    setEnv({ OPENHANDS_DATA_DIR: '/elsewhere' })
    expect([readConfig().dataDir, readDataDir()]).toEqual(['/elsewhere', '/elsewhere'])
  })

  test.each(['OPENHANDS_MASTER_KEY', 'OPENHANDS_SECRET_KEY', 'LLM_API_KEY'] as const)(
    '%s may be in a file, whose surrounding white space is ignored',
    async (name) => {
      await writeFile('secret', `\n  ${KEY}-from-a-file \n`)
      setEnv({ OPENHANDS_MASTER_KEY: KEY })
      if (name === 'OPENHANDS_MASTER_KEY') setEnv({ OPENHANDS_MASTER_KEY: '' })
      setEnv({ [`${name}_FILE`]: 'secret' })
      const { masterKeys, secretKeys, defaultLlm } = readConfig()
      expect(
        { OPENHANDS_MASTER_KEY: masterKeys[0], OPENHANDS_SECRET_KEY: secretKeys[0], LLM_API_KEY: defaultLlm.api_key }[
          name
        ],
      ).toBe(`${KEY}-from-a-file`)
    },
  )

  test("the server's own endpoint is always among the allowed ones, if there is a list", () => {
    setEnv({ OPENHANDS_MASTER_KEY: KEY, LLM_BASE_URL: 'http://127.0.0.1:8001/v1' })
    expect(readConfig().llmAllow).toEqual([])
    setEnv({ OPENHANDS_LLM_ALLOW: 'public, *.example.org' })
    expect(readConfig().llmAllow).toEqual(['public', '*.example.org', 'http://127.0.0.1:8001'])
  })

  test('the existence of a master key is known before the configuration is read', () => {
    expect(masterKeySource()).toBeUndefined()
    setEnv({ OPENHANDS_MASTER_KEY: KEY })
    expect(masterKeySource()).toEqual({ from: 'environment' })
  })
})

test('the settings file of the command line is a secret file if there is one', async () => {
  setEnv({ OPENHANDS_MASTER_KEY: KEY, HOME: home })
  const path = join(home, '.openhands', 'settings_sdk.json')
  expect(readConfig().secretFiles).not.toContain(path)
  await mkdir(join(home, '.openhands'))
  await writeFile(path, '{"api_key":"sk-example-key"}')
  expect(readConfig().secretFiles).toContain(path)
})

test.skipIf(process.platform !== 'linux')('a user without an entry in the list of users has the home /', async () => {
  const { href } = new URL('../../src/config/paths.ts', import.meta.url)
  const program = `import(${JSON.stringify(href)}).then(({ defaultDataDir }) => console.log(defaultDataDir()))`
  const asNobodyKnown = ['--user', '--map-user=54321', '--map-group=54321', process.execPath, '--no-warnings']
  const { stdout } = await promisify(execFile)('unshare', [...asNobodyKnown, '-e', program], { env: {} })
  expect(stdout).toBe('/.local/share/agent-server\n')
})

describe('is refused in one sentence that names the variable:', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    [
      'no master key',
      { OPENHANDS_MASTER_KEY: '' },
      /^OPENHANDS_MASTER_KEY is not set\. Make a key with `openssl rand -hex 32` and export it/,
    ],
    [
      'a short master key',
      { OPENHANDS_MASTER_KEY: 'hunter2' },
      /^OPENHANDS_MASTER_KEY must have at least 16 characters; make one with `openssl rand -hex 32`\.$/,
    ],
    ['a short one among several', { OPENHANDS_MASTER_KEY: `${KEY},hunter2` }, /at least 16 characters/],
    ['one with nothing behind the comma', { OPENHANDS_MASTER_KEY: `${KEY},` }, /at least 16 characters/],
    [
      'one that cannot be sent in a header',
      { OPENHANDS_MASTER_KEY: 'hunter2 hunter2 hunter2' },
      /^OPENHANDS_MASTER_KEY may contain visible ASCII characters only, and no spaces; make one with/,
    ],
    ['a port that is none', { OPENHANDS_SERVER_PORT: 'hunter2' }, /^OPENHANDS_SERVER_PORT is not valid: .*\.$/],
    ['a port beyond all ports', { OPENHANDS_SERVER_PORT: '65536' }, /^OPENHANDS_SERVER_PORT is not valid: .*65535/],
    ['a blank port', { OPENHANDS_SERVER_PORT: ' ' }, /^OPENHANDS_SERVER_PORT is not valid/],
    ['half a port', { OPENHANDS_SERVER_PORT: '80.5' }, /^OPENHANDS_SERVER_PORT is not valid/],
    ['a level there is none of', { OPENHANDS_LOG_LEVEL: 'hunter2' }, /^OPENHANDS_LOG_LEVEL is not valid: .*DEBUG/],
    [
      'a memory limit in no unit there is',
      { OPENHANDS_LIMIT_MEMORY: '5 apples' },
      /^OPENHANDS_LIMIT_MEMORY is not valid/,
    ],
    [
      'a memory limit that no shell starts with',
      { OPENHANDS_LIMIT_MEMORY: '1M' },
      /^OPENHANDS_LIMIT_MEMORY .* at least/,
    ],
    ['more memory than there is', { OPENHANDS_LIMIT_MEMORY: '101%' }, /^OPENHANDS_LIMIT_MEMORY is not valid/],
    ['a part of a process', { OPENHANDS_LIMIT_PROCESSES: '20.5' }, /^OPENHANDS_LIMIT_PROCESSES is not valid/],
    ['no processor at all', { OPENHANDS_LIMIT_CPU: '0' }, /^OPENHANDS_LIMIT_CPU is not valid/],
    ['a disk limit of no number', { OPENHANDS_LIMIT_DISK: 'all' }, /^OPENHANDS_LIMIT_DISK is not valid/],
    ['an isolation there is none of', { OPENHANDS_ISOLATION: 'hunter2' }, /^OPENHANDS_ISOLATION is not valid: .*auto/],
    [
      'a readable path that is not absolute',
      { OPENHANDS_SANDBOX_READABLE: '/srv:models' },
      /^OPENHANDS_SANDBOX_READABLE: models is not an absolute path\.$/,
    ],
    ['all files as readable ones', { OPENHANDS_SANDBOX_READABLE: '/' }, /^OPENHANDS_SANDBOX_READABLE cannot be \//],
    [
      'a root that is no absolute path',
      { OPENHANDS_WORKDIR_ROOTS: '/srv:projects' },
      /^OPENHANDS_WORKDIR_ROOTS: projects is not an absolute path\.$/,
    ],
    [
      'workdirs made in the middle of the server’s own files',
      { OPENHANDS_DATA_DIR: '/srv/x', OPENHANDS_WORKDIR_BASE: '/srv/x' },
      /^OPENHANDS_WORKDIR_BASE .*OPENHANDS_DATA_DIR/,
    ],
    ...['sessions', 'before-format-3/x', 'local'].map((name): [string, Record<string, string>, RegExp] => [
      `workdirs made among the server’s own files: ${name}`,
      { OPENHANDS_DATA_DIR: '/srv/x', OPENHANDS_WORKDIR_BASE: `/srv/x/${name}` },
      /^OPENHANDS_WORKDIR_BASE is in \/srv\/x\/[\w-]+, where the server keeps its own files\.$/,
    ]),
    ...['~', '~/hunter2', '~hunter2/data'].map((path): [string, Record<string, string>, RegExp] => [
      `a home that nobody expands: ${path}`,
      path.endsWith('data') ? { OPENHANDS_WORKDIR_BASE: path } : { OPENHANDS_DATA_DIR: path },
      /^OPENHANDS_\w+: ~ is not expanded here; write the whole path\.$/,
    ]),
    ...['OPENHANDS_WORKDIR_ROOTS', 'OPENHANDS_SANDBOX_READABLE'].map(
      (name): [string, Record<string, string>, RegExp] => [
        `a list of no paths, which would limit nothing: ${name}`,
        { [name]: '::' },
        new RegExp(`^${name} has no path in it`),
      ],
    ),
    ['a list of no endpoints, which would limit nothing', { OPENHANDS_LLM_ALLOW: ' , ' }, /^OPENHANDS_LLM_ALLOW takes/],
    ...['0', '10m', ' '].map((value): [string, Record<string, string>, RegExp] => [
      `idle seconds of ${JSON.stringify(value)}`,
      { OPENHANDS_IDLE_SECONDS: value },
      /^OPENHANDS_IDLE_SECONDS is not valid: give a number of seconds from 0\.1 to 31536000\.$/,
    ]),
    ...['LLM', 'TAVILY'].map((name): [string, Record<string, string>, RegExp] => [
      `a password in a URL that is shown, and that is not sent: ${name}`,
      { [`${name}_BASE_URL`]: 'https://me:hunter2@models.example/v1' },
      new RegExp(`^${name}_BASE_URL contains a user name or password\\. Leave them out, and set ${name}_API_KEY\\.$`),
    ]),
    [
      'a body that may hold nothing',
      { OPENHANDS_MAX_BODY_BYTES: '1' },
      /^OPENHANDS_MAX_BODY_BYTES is not valid: .*1024/,
    ],
    ...[
      'hunter2',
      'https://hunter2.example.com/v1',
      'https://hunter2@example.com',
      '*hunter2',
      'ftp://x.example.com',
    ].map((entry): [string, Record<string, string>, RegExp] => [
      `an endpoint for models that is no origin: ${entry}`,
      { OPENHANDS_LLM_ALLOW: `public,${entry}` },
      /^OPENHANDS_LLM_ALLOW takes origins such as .*public\.$/,
    ]),
    [
      "a model's key that cannot be sent",
      { LLM_API_KEY: 'hunter2…' },
      /^LLM_API_KEY holds a character that cannot be sent in an HTTP header\.$/,
    ],
    ['output without bounds', { OPENHANDS_MAX_OUTPUT_BYTES: '99999999' }, /^OPENHANDS_MAX_OUTPUT_BYTES is not valid/],
    [
      'a stream buffer that holds nothing',
      { OPENHANDS_STREAM_BUFFER_BYTES: '1' },
      /^OPENHANDS_STREAM_BUFFER_BYTES is not valid/,
    ],
    ...[
      'https://app.example.com/',
      'app.example.com',
      'HTTPS://hunter2.example.com',
      'null',
      'ftp://x.example.com',
      'https://*.example.com',
    ].map((origin): [string, Record<string, string>, RegExp] => [
      `an origin that no browser would send: ${origin}`,
      { OPENHANDS_CORS_ORIGINS: origin },
      /^OPENHANDS_CORS_ORIGINS takes origins such as/,
    ]),
    ...['true', '1', '0.0.0.0/0', '::/0', '10.0.0.0/33', 'proxy.example.com', '127.0.0.1/8/9', '1,2'].map(
      (proxy): [string, Record<string, string>, RegExp] => [
        `a proxy that is none: ${proxy}`,
        { OPENHANDS_TRUST_PROXY: proxy },
        /^OPENHANDS_TRUST_PROXY takes addresses/,
      ],
    ),
    ['no run at all', { OPENHANDS_MAX_CONCURRENT_RUNS: '0' }, /^OPENHANDS_MAX_CONCURRENT_RUNS is not valid/],
    ['no stream at all', { OPENHANDS_MAX_STREAMS_PER_CONVERSATION: '0' }, /^OPENHANDS_MAX_STREAMS_PER_CONVERSATION is/],
    ['neither yes nor no', { OPENHANDS_LOG_LLM_PAYLOADS: 'hunter2' }, /^OPENHANDS_LOG_LLM_PAYLOADS is not valid/],
    [
      'an endpoint that is no URL',
      { LLM_BASE_URL: 'hunter2' },
      /^LLM_BASE_URL is not valid: give a URL that begins with http:\/\/ or https:\/\//,
    ],
    [
      'an endpoint with the path of a route',
      { LLM_BASE_URL: 'https://hunter2.example/v1/chat/completions' },
      /^LLM_BASE_URL ends with \/chat\/completions, which the server adds itself\. Leave that part out\.$/,
    ],
    ['an API that is not known', { LLM_PROVIDER: 'hunter2' }, /^LLM_PROVIDER is not valid/],
    ['an endpoint that is not HTTP', { LLM_BASE_URL: 'file:///hunter2' }, /^LLM_BASE_URL is not valid/],
    [
      'a key and a key file',
      { OPENHANDS_MASTER_KEY_FILE: 'x' },
      /^Set OPENHANDS_MASTER_KEY or OPENHANDS_MASTER_KEY_FILE, not both\.$/,
    ],
    [
      'a key file that is missing',
      { LLM_API_KEY_FILE: '/nowhere' },
      /^LLM_API_KEY_FILE: \/nowhere cannot be read \(ENOENT\)\.$/,
    ],
    [
      'a key file that is a directory',
      { OPENHANDS_SECRET_KEY_FILE: '/tmp' },
      /^OPENHANDS_SECRET_KEY_FILE: \/tmp cannot be read \(EISDIR\)\.$/,
    ],
    ['a key file that is empty', { LLM_API_KEY_FILE: '/dev/null' }, /^LLM_API_KEY_FILE: \/dev\/null is empty\.$/],
  ])('%s', (_, variables, sentence) => {
    const message = refusal({ OPENHANDS_MASTER_KEY: KEY, ...variables })
    expect(message).toMatch(sentence)
    expect(message, 'no value is repeated: it may be a secret in the wrong place').not.toMatch(/hunter2|a-master-key/)
    expect(message).not.toContain('\n')
  })

  test('a .env that cannot be read', async () => {
    await mkdir('.env')
    expect(refusal({ OPENHANDS_MASTER_KEY: KEY })).toBe('.env cannot be read (EISDIR).')
  })

  test.each([
    ['/dev/null/x', 'ENOTDIR'],
    ['/dev/null', 'EEXIST'],
    // Where Node's own way of making directories never comes back.
    ['/proc/x/y', 'ENOENT'],
  ])('a directory that cannot be written to: %s', async (path, code) => {
    await expect(ensureWritable(path, 'OPENHANDS_DATA_DIR')).rejects.toThrow(
      `${path} cannot be written to (${code}); set OPENHANDS_DATA_DIR to a directory that can.`,
    )
    await ensureWritable(join(home, 'a/b'), 'OPENHANDS_DATA_DIR')
  })
})

test.each([
  'mysql://db.example.com/agents',
  'postgresql://user:100%@db.example.com/agents',
  'postgresql://db.example.com',
  'db.example.com',
])('a database URL that cannot be one is refused without quoting it: %s', (url) => {
  const said = refusal({ OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATABASE_URL: url })
  expect(said).toContain('OPENHANDS_DATABASE_URL is not valid: give it as postgresql://')
  expect(said).not.toContain(url)
})
