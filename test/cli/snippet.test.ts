/** `agent-server snippet`: what it prints is valid where it is pasted, and contains no key. */
import { expect, test } from 'vitest'
import { snippet } from '../../src/cli/snippet.ts'
import { PROTOCOL_NAMES } from '../../src/protocols/protocol-routes.ts'
import { allBlocks, readPage } from '../docs/blocks.ts'

const SERVER = 'https://agents.example.com'

test.each([undefined, SERVER])('the settings of editors start this program (server: %s)', (server) => {
  const { agent_servers: servers } = JSON.parse(snippet({ name: 'snippet', of: 'zed', server }))
  const { command, args } = servers['agent-server']
  expect(command).toMatch(/^\//)
  expect(args.slice(args.indexOf('acp'))).toEqual(server === undefined ? ['acp'] : ['acp', '--server', server])
})

test('the other ones name the command of tools, or the URL', () => {
  expect(snippet({ name: 'snippet', of: 'claude', server: undefined })).toMatch(
    /^claude mcp add agent-server -- .* '?mcp'?\n$/,
  )
  expect(snippet({ name: 'snippet', of: 'claude', server: `${SERVER}/` })).toBe(
    `claude mcp add --transport http agent-server '${SERVER}/mcp' --header "Authorization: Bearer $KEY"\n`,
  )
  expect(snippet({ name: 'snippet', of: 'codex', server: undefined })).toMatch(
    /^command = "\/.*"\nargs = \[.*"mcp"\]$/m,
  )
  expect(snippet({ name: 'snippet', of: 'codex', server: SERVER })).toContain(
    `url = "${SERVER}/mcp"\nbearer_token_env_var = "OPENHANDS_MASTER_KEY"\n`,
  )
  const ofOpenWebUi = snippet({ name: 'snippet', of: 'openwebui', server: SERVER })
  expect(ofOpenWebUi).toContain(`-e OPENAI_API_BASE_URL='${SERVER}/v1' -e OPENAI_API_KEY="$KEY" `)
  expect(ofOpenWebUi).toMatch(/^docker run .* -e ENABLE_FORWARD_USER_INFO_HEADERS=true .*:main\n$/)
  expect(snippet({ name: 'snippet', of: 'curl', server: SERVER })).toContain(`${SERVER}/conversations`)
})

test('the component for a page has the URL, and names that the packages have', async () => {
  const component = snippet({ name: 'snippet', of: 'usechat', server: `${SERVER}/` })
  expect(component).toContain(`"${SERVER}/ai/chat"`)
  const imports = [...component.matchAll(/^import \{ (.*) \} from '(.*)'$/gm)]
  expect(imports.length).toBe(2)
  for (const [, names = '', from = ''] of imports)
    expect(Object.keys(await import(from))).toEqual(expect.arrayContaining(names.split(', ')))
})

test('README.md has a line for each protocol, with the URLs of its page and the command that is printed', () => {
  const [section = '', items = ''] = /- \*\*Protocols\*\*.*\n((?: {2}- .*`.*\n)+)/.exec(readPage('README.md')) ?? []
  expect(items.trim().split('\n')).toHaveLength(PROTOCOL_NAMES.length)
  const page = readPage('docs/protocols.md')
  for (const [, path = ''] of section.matchAll(/http:\/\/127\.0\.0\.1:8000(\/[\w./-]+)/g)) expect(page).toContain(path)
  const [, command] = /`(claude .*?)`/.exec(section) ?? []
  const printed = snippet({ name: 'snippet', of: 'claude', server: undefined })
  expect(printed.replace(/-- .* '?mcp'?\n$/, '-- agent-server mcp')).toBe(command)
})

test('docs/cli.md shows what is printed for Zed, with a short path', () => {
  const block = allBlocks().find(({ page, language }) => page === 'docs/cli.md' && language === 'jsonc')
  const snippetOfZed = JSON.parse(snippet({ name: 'snippet', of: 'zed', server: undefined }))
  Object.assign(snippetOfZed.agent_servers['agent-server'], { command: 'agent-server', args: ['acp'] })
  expect(JSON.parse(block!.text)).toEqual(snippetOfZed)
})
