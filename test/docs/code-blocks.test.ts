/** Every code block of the documentation is checked: requests and JSON here, and all others by the tests that are listed here. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { readArguments } from '../../src/cli/command-line/read-arguments.ts'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { Event } from '../../src/contract/events/event.ts'
import { OpenRequests } from '../../src/contract/request.ts'
import { CommandFrame } from '../../src/contract/socket.ts'
import { rulesIn } from '../../src/conversations/config/settings.ts'
import { readAnswer } from '../../src/hooks/hook-answer.ts'
import { makeProject } from '../project/project-directory.ts'
import type { Block } from './blocks.ts'
import { allBlocks, shownIn } from './blocks.ts'
import { some } from '../support/some.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const blocks = allBlocks()

/** Tests that run or parse the blocks of a page in these languages. */
const CHECKED_BY: Readonly<Record<string, string>> = {
  'README.md sh terminal-1': 'test/stories/readme-tour.test.ts',
  'README.md sh terminal-2': 'test/stories/readme-tour.test.ts',
  'docs/tour.md sh terminal-2': 'test/stories/readme-tour.test.ts',
  'README.md text': 'test/stories/demo.test.ts',
  'docs/cli.md': 'test/docs/cli.test.ts',
  'docs/cli.md json': 'test/docs/cli.test.ts',
  'docs/cli.md sh': 'test/stories/headless.test.ts',
  'docs/client.md ts': 'test/docs/client-page.test.ts',
  'docs/hooks.md python': 'test/docs/hooks-page.test.ts',
  'docs/install.md ini': 'test/docs/install.test.ts',
  'docs/install.md nginx': 'test/stories/proxies.test.ts',
  'docs/install.md caddyfile': 'test/stories/proxies.test.ts',
  'docs/requests.md text': 'test/stories/questions.test.ts',
  'docs/requests.md ts': 'test/docs/requests-page.test.ts',
  'docs/sdk.md ts': 'test/docs/sdk.test.ts',
  'docs/security.md js': 'test/docs/security-page.test.ts',
  ...Object.fromEntries(
    ['text', 'sh', 'ts', 'python', 'go', 'java'].map((name) => [`docs/clients.md ${name}`, 'scripts/clients/page.ts']),
  ),
}
const nameOf = ({ page, language }: Block) => `${page} ${language}`.trim()
const isCheckedElsewhere = (block: Block) => Object.hasOwn(CHECKED_BY, nameOf(block))

test('the tests that check blocks exist, read the page, and are listed only for blocks that exist', () => {
  const names = new Set(blocks.map(nameOf))
  for (const [name, path] of Object.entries(CHECKED_BY)) {
    expect(names, `${name} in CHECKED_BY`).toContain(name)
    const [page = ''] = name.split(' ')
    expect(read(path), path).toContain(page.replace(/^docs\//, ''))
  }
})

/** Drawings are for people. */
const mine = blocks.filter((block) => !isCheckedElsewhere(block) && block.language !== 'mermaid')
const requests = mine.filter(({ language, text }) => ['', 'json'].includes(language) && shownIn(text) !== undefined)
const labelled = (blocks: readonly Block[]) =>
  some('blocks', blocks).map((block) => [`${block.page}: ${block.text.trim().split('\n', 1)[0]}`, block] as const)

type Operation = { requestBody?: { content: Record<string, { schema: object }> } }
const openapi: { paths: Record<string, Record<string, Operation>> } = JSON.parse(read('openapi/openapi.json'))
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema(openapi, 'openapi.json')

test.each(labelled(requests))('%s: the server has these routes, and accepts this JSON', (_, { text }) => {
  const shown = shownIn(text)!
  expect(shown.length).toBeGreaterThan(0)
  for (const { method, path, body } of shown) {
    if (method === undefined || path === undefined) expectKnownJson(body)
    else expectBodyOf(method, path, body)
  }
})

function expectBodyOf(method: string, path: string, body: unknown): void {
  const shape = (route: string) => route.replace(/\?.*/, '').replaceAll(/\{\w+\}/g, '{}')
  const [route] = Object.keys(openapi.paths).filter((each) => shape(each) === shape(path))
  const operation = openapi.paths[route ?? '']?.[method.toLowerCase()]
  expect(operation, `${method} ${path}`).toBeDefined()
  if (body === undefined) return
  const at = `#/paths/${route!.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}`
  const pointer = `openapi.json${encodeURI(at)}/requestBody/content/application~1json/schema`
  const validate = ajv.compile({ $ref: pointer })
  expect(validate(body), `${method} ${path}: ${ajv.errorsText(validate.errors)}`).toBe(true)
  if (route === '/conversations') expectConversation(body)
}

/** An event, a list of requests, a frame of a WebSocket, the answer of a hook, or a part of the body that creates a conversation. */
function expectKnownJson(body: unknown): void {
  const fields = Object.keys(body as object)
  if (fields.includes('seq')) Event.parse(body)
  else if (fields.includes('items')) OpenRequests.parse(body)
  else if (fields.includes('type')) CommandFrame.parse(body)
  else if (fields.includes('hookSpecificOutput')) readAnswer('PreToolUse', JSON.stringify(body))
  else expectConversation(body)
}

/** Also that its rules can be read. */
function expectConversation(body: unknown): void {
  rulesIn(CreateConversation.parse(body), (text) => text)
}

const projectFiles = mine.filter(({ page, text }) => page === 'docs/project-settings.md' && text.startsWith('.claude/'))

test('docs/project-settings.md: the files are loaded as they are', async () => {
  const files = projectFiles.map(({ text }) => [text.split('\n', 1)[0]!, text.slice(text.indexOf('\n') + 1)])
  await using project = await makeProject(Object.fromEntries(files))
  const { settings } = await project.load({ isTrusted: true })
  expect(settings.ignored).toEqual([])
  const names = [settings.skills, settings.commands, settings.agents].map((each) => each.map(({ name }) => name))
  expect(names).toEqual([['pdf'], ['review'], ['reviewer']])
})

const scripts = mine.filter(
  (block) => !requests.includes(block) && !projectFiles.includes(block) && ['', 'bash', 'sh'].includes(block.language),
)

test.each(labelled(scripts))('%s: bash reads it, and its commands exist', (_, { text }) => {
  expect(() => execFileSync('bash', ['-n'], { input: text })).not.toThrow()
  for (const [, line] of text.matchAll(/(?:^|[(|] ?)agent-server (.*?)(?: >.*|\).*|#.*)?$/gm))
    readArguments(line!.trim().split(/\s+/))
  for (const [, version] of text.matchAll(/agent-server-(\d+\.\d+\.\d+)/g)) expect(version).toBe(manifest.version)
  const npm = [...text.matchAll(/\bnpm (?:run )?([a-z:]+)/g)].map(([, name]) => name!)
  for (const name of npm) if (name !== 'ci') expect(Object.keys(manifest.scripts)).toContain(name)
  if (text.includes('docker build')) expect(existsSync(join(ROOT, 'Dockerfile'))).toBe(true)
  for (const [, method, path, body] of text.matchAll(/curl -X (\w+) "\$URL(\/[^"]*)".*?-d '(.*?)'/gs))
    expectBodyOf(method!, path!.replaceAll(/\$\w+/g, '{id}'), JSON.parse(body!))
})

test('docs/operating.md: the configuration of Prometheus scrapes the route for metrics with a key', () => {
  const [block] = mine.filter(({ language }) => language === 'yaml')
  expect(parse(block!.text).scrape_configs).toMatchObject([
    { authorization: { credentials_file: expect.any(String) }, static_configs: [{ targets: [expect.any(String)] }] },
  ])
  // The default of `metrics_path`.
  expect(openapi.paths).toHaveProperty(['/metrics'])
})

test('docs/operating.md: the backup has the data, without the key and what belongs to a process', async () => {
  const command = scripts.find(({ page, text }) => page === 'docs/operating.md' && text.startsWith('tar '))!.text
  await using home = await makeProject({
    '.local/share/agent-server/master-key': 'secret',
    '.local/share/agent-server/local.json': '{}',
    '.local/share/agent-server/conversations/one/events.jsonl': '{}\n',
  })
  const env = { PATH: process.env['PATH'], HOME: home.path }
  execFileSync('bash', ['-c', command], { cwd: home.path, env })
  const listed = execFileSync('tar', ['-tzf', 'backup.tar.gz'], { cwd: home.path, encoding: 'utf8' })
  expect(listed.split('\n').filter((path) => !path.endsWith('/') && path !== '')).toEqual([
    './conversations/one/events.jsonl',
  ])
})

test('there is no block of another kind', () => {
  const known = new Set([
    ...requests,
    ...projectFiles,
    ...scripts,
    ...mine.filter(({ language }) => language === 'yaml'),
  ])
  expect(mine.filter((block) => !known.has(block))).toEqual([])
})
