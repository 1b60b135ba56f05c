/** The forms in which servers are configured: what is stored of them, and what a mistake is answered with. */
import { describe, expect, test } from 'vitest'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { McpInput } from '../../src/contract/mcp/mcp-server.ts'
import { describeIssue } from '../../src/contract/problem.ts'
import { MissingSecret, placeOf, withSecrets } from '../../src/mcp/named-secrets.ts'
import { readMcp } from '../../src/mcp/read-config.ts'

import { MASK } from '../../src/contract/values/llm-config.ts'

const read = (input: unknown) => readMcp(McpInput.parse(input))

test('the forms of .mcp.json and of OpenHands are read as one', () => {
  const { servers, credentials } = read({
    mcpServers: {
      files: { command: 'files', args: ['.'], env: { MODE: 'fast', API_KEY: 'a-literal-key' } },
      plain: { url: 'https://a.example.com/mcp' },
      old: { type: 'sse', url: 'https://b.example.com/sse', headers: { 'X-Key': '${KEY}', Accept: '*/*' } },
      off: { command: 'off', disabled: true },
    },
    stdio_servers: [{ name: 'memory', command: 'memory' }],
    shttp_servers: [
      { url: 'https://c.example.com/mcp' },
      { url: 'https://c.example.com/other', api_key: 'another-literal', timeout: 5 },
    ],
    sse_servers: [{ name: 'last', url: 'http://d.example.com/sse' }],
  })
  expect(servers).toEqual({
    files: { transport: 'stdio', command: 'files', args: ['.'], env: { MODE: 'fast', API_KEY: '**********' } },
    plain: { transport: 'http', url: 'https://a.example.com/mcp' },
    old: { transport: 'sse', url: 'https://b.example.com/sse', headers: { 'X-Key': '${KEY}', Accept: '*/*' } },
    memory: { transport: 'stdio', command: 'memory' },
    'c-example-com': { transport: 'http', url: 'https://c.example.com/mcp' },
    'c-example-com-2': {
      transport: 'http',
      url: 'https://c.example.com/other',
      timeout: 5,
      headers: { Authorization: '**********' },
    },
    last: { transport: 'sse', url: 'http://d.example.com/sse' },
  })
  // Each for its address.
  const places = Object.entries(credentials).map(([place, value]) => [place.replace(/ [0-9a-f]{16}$/, ''), value])
  expect(Object.fromEntries(places)).toEqual({
    'files env API_KEY': 'a-literal-key',
    'c-example-com-2 headers Authorization': 'Bearer another-literal',
  })
})

describe('a wrong configuration is answered with the name of the field', () => {
  test.each([
    [{ a: {} }, 'mcp.mcpServers.a.command'],
    [{ a: { type: 'http' } }, 'mcp.mcpServers.a.url'],
    [{ a: { command: 'x', url: 'https://x' } }, 'mcp.mcpServers.a.url'],
    [{ a: { command: 'x', type: 'sse' } }, 'mcp.mcpServers.a.type'],
    [{ a: { url: 'https://x', type: 'stdio' } }, 'mcp.mcpServers.a.type'],
    [{ a: { url: 'https://x', args: [] } }, 'mcp.mcpServers.a.args'],
    [{ a: { command: 'x', headers: {} } }, 'mcp.mcpServers.a.headers'],
    [{ a: { url: 'ftp://x' } }, 'mcp.mcpServers.a.url'],
    [{ a: { url: 'https://user:word@x' } }, 'mcp.mcpServers.a.url'],
    [{ a: { command: 'x', timeout: 0 } }, 'mcp.mcpServers.a.timeout'],
    [{ a: { command: 'x', env: { SECRET_IN_A_NAME: 1 } } }, 'mcp.mcpServers.a.env'],
    [{ 'not a name': { command: 'x' } }, 'mcp.mcpServers'],
    [{ a__b: { command: 'x' } }, 'mcp.mcpServers'],
  ])('%j', (mcpServers, field) => {
    const { error } = CreateConversation.safeParse({ mcp: { mcpServers } })
    expect(error!.issues.map((issue) => describeIssue(issue, []).path)).toEqual([field])
  })

  test.each([
    [
      {
        stdio_servers: [
          { name: 'a', command: 'x' },
          { name: 'a', command: 'y' },
        ],
      },
      /^mcp\.stdio_servers\.1\.name/,
    ],
    [{ stdio_servers: [{ name: 'no name', command: 'x' }] }, /^mcp\.stdio_servers\.0\.name/],
    [{ sse_servers: [{ url: 'file:///etc/passwd' }] }, /^mcp\.sse_servers\.0\.url/],
    [{ mcpServers: { a: { url: 'https://x', headers: { Authorization: '**********' } } } }, /masked/],
  ])('%j', (input, message) => {
    expect(() => read(input)).toThrow(message)
  })
})

describe('names of secrets', () => {
  const source = { secret: (name: string) => ({ KEY: 'the-key' })[name], credential: () => 'the-credential' }
  const server = {
    transport: 'http' as const,
    url: 'https://x/${KEY}',
    headers: { A: 'Bearer ${KEY}', B: '**********' },
  }

  test('stand for their values in each field', () => {
    expect(withSecrets('s', server, source)).toEqual({
      transport: 'http',
      url: 'https://x/the-key',
      headers: { A: 'Bearer the-key', B: 'the-credential' },
    })
    const program = {
      transport: 'stdio' as const,
      command: '${KEY}',
      args: ['--key=${KEY}', '${OTHER:-none}', '$KEY', '${}'],
    }
    expect(withSecrets('s', program, source)).toMatchObject({
      command: '${KEY}',
      args: ['--key=the-key', 'none', '$KEY', '${}'],
    })
  })

  test('that do not exist are named with their field', () => {
    const missing = { transport: 'stdio' as const, command: 'x', env: { TOKEN: '${OTHER}' } }
    expect(() => withSecrets('s', missing, source)).toThrow(MissingSecret)
    expect(() => withSecrets('s', missing, source)).toThrow(/^s\.env\.TOKEN names the secret OTHER/)
  })
})

test('a credential that was stored before places had an address is found; one of another address is not', () => {
  const server = { transport: 'http', url: 'https://a.example.com/mcp', headers: { Authorization: MASK } } as const
  const kept = new Map([['far headers Authorization', 'Bearer old']])
  const source = { secret: () => undefined, credential: (place: string) => kept.get(place) }
  expect(withSecrets('far', server, source).headers).toEqual({ Authorization: 'Bearer old' })
  kept.clear()
  kept.set(placeOf('far', { url: 'https://b.example.com' }, 'headers', 'Authorization'), 'Bearer other')
  expect(() => withSecrets('far', server, source)).toThrow('cannot be decrypted')
})

test.each([
  ['another argument', { command: 'x', args: ['b'], env: { API_KEY: MASK } }],
  ['another environment', { command: 'x', args: ['a'], env: { API_KEY: MASK, NODE_OPTIONS: '--require ./other.js' } }],
  ['another origin', { url: 'https://b.example.com/', headers: { 'X-Key': MASK } }],
  [
    'another issuer',
    { url: 'https://a.example.com/', oauth: { client_id: 'c', client_secret: MASK, issuer: 'https://b' } },
  ],
])('a masked credential is refused for %s', (_what, server) => {
  const kept = {
    command: { command: 'x', args: ['a'], env: { API_KEY: 'first' } },
    url: {
      url: 'https://a.example.com/mcp',
      headers: { 'X-Key': 'first' },
      oauth: { client_id: 'c', client_secret: 'first', issuer: 'https://a' },
    },
  }
  const { servers } = read({ mcpServers: { s: 'command' in server ? kept.command : kept.url } })
  const again = (given: object) => readMcp(McpInput.parse({ mcpServers: { s: given } }), servers)
  expect(() => again(server)).toThrow('has a masked value')
  const { transport: _, ...same } = servers['s']!
  expect(again({ ...same, timeout: 7 }).credentials).toEqual({})
})
