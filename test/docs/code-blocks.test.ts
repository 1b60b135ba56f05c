/** Every code block of the documentation is run or checked by a test; how many run, and how long the pages are. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { readArguments } from '../../src/cli/command-line/read-arguments.ts'
import { readConfig } from '../../src/config/config.ts'
import { VARIABLES } from '../../src/config/variables.ts'
import { endpointOf } from '../../src/llm/endpoints/endpoint.ts'
import { VendorKeys } from '../../src/llm/endpoints/vendor-keys.ts'
import { VENDORS } from '../../src/llm/endpoints/vendors.ts'
import openapi from '../../openapi/openapi.json' with { type: 'json' }
import { makeProject } from '../project/project-directory.ts'
import { some } from '../support/some.ts'
import type { Block } from './blocks.ts'
import { allBlocks, PAGES, projectFiles, readPage } from './blocks.ts'
import { exampleKind, isPicture, isRunElsewhere, isSettings, isUnrun, nameOf, RUN_BY } from './kinds.ts'

const ROOT = join(import.meta.dirname, '../..')
const blocks = allBlocks()
const labelled = (blocks: readonly Block[]) =>
  some('blocks', blocks).map((block) => [`${block.page}:${block.line}`, block] as const)

const isExample = (block: Block) => !isPicture(block) && !isUnrun(block)

test('each block is run, is checked, or shows output', () => {
  const isKnown = (block: Block) =>
    isRunElsewhere(block) || exampleKind(block) !== undefined || isSettings(block) || isUnrun(block) || isPicture(block)
  expect(blocks.filter((block) => !isKnown(block)).map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('the tests that run blocks exist, read the page, and are listed only for blocks that exist', () => {
  const names = new Set(blocks.map(nameOf))
  for (const [name, path] of Object.entries(RUN_BY)) {
    expect(names, `${name} in RUN_BY`).toContain(name)
    const [page = ''] = name.split(' ')
    expect(readFileSync(join(ROOT, path), 'utf8'), path).toContain(page.replace(/^docs\//, ''))
  }
})

describe('the pages', () => {
  const pages = PAGES.filter((page) => page.startsWith('docs/'))
  const words = pages.reduce((sum, page) => sum + readPage(page).split(/\s+/).length, 0)
  const examples = blocks.filter((block) => pages.includes(block.page) && isExample(block))

  test('are few', () => {
    expect(pages.length).toBeLessThanOrEqual(MOST_PAGES)
  })

  test('of the documentation have at most 44,250 words', () => {
    expect(words).toBeLessThanOrEqual(44_250)
  })

  test('have many examples', () => {
    expect((1000 * examples.length) / words).toBeGreaterThanOrEqual(LEAST_EXAMPLES)
  })
})

const MOST_PAGES = 30

/** Of 1,000 words. */
const LEAST_EXAMPLES = 6

const scripts = blocks.filter(({ language }) => language.startsWith('sh'))

test.each(labelled(scripts.filter(isUnrun)))('%s: bash reads it', (_, { text }) => {
  expect(() => execFileSync('bash', ['-n'], { input: text })).not.toThrow()
})

test('the commands of the pages exist', () => {
  const text = scripts.map((script) => script.text).join('')
  for (const [, line] of text.matchAll(/(?:^|[(|] ?)agent-server (.*?)(?: >.*|\).*|#.*|\|.*)?$/gm))
    readArguments(wordsOf(line!), { isTerminal: true })
  for (const [, version] of text.matchAll(/agent-server-(\d+\.\d+\.\d+)/g)) expect(version).toBe(manifest.version)
  const npm = [...text.matchAll(/\bnpm (?:run )?(?:--silent )?([a-z]+(?::[a-z]+)*)/g)].map(([, name]) => name!)
  const known = ['ci', 'install', ...Object.keys(manifest.scripts)]
  expect(some('npm commands', npm).filter((name) => !known.includes(name))).toEqual([])
  expect(text.includes('docker build') && existsSync(join(ROOT, 'Dockerfile'))).toBe(true)
})

/** As bash splits them, without expansions. */
const wordsOf = (line: string) => (line.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll(/['"]/g, ''))

test.each(labelled(blocks.filter(isSettings)))('%s: the server starts with these settings', (_, { text }) => {
  const settings = parseEnv(text)
  const names = Object.keys(settings).map((name) => name.replace(/_FILE$/, ''))
  const isOfVendor = (name: string) => VENDOR_KEYS.includes(name)
  expect(some('settings', names).filter((name) => !Object.hasOwn(VARIABLES, name) && !isOfVendor(name))).toEqual([])
  const values = Object.entries(settings).filter(([name]) => !name.endsWith('_FILE') && !isOfVendor(name))
  const { port, defaultLlm } = readConfig({ OPENHANDS_MASTER_KEY: 'k'.repeat(32), ...Object.fromEntries(values) })
  expect(port).toBeTypeOf('number')
  if (defaultLlm.model !== undefined) expect(endpointOf(defaultLlm).baseUrl).toMatch(/^https?:/)
  const key = new VendorKeys(settings).for(defaultLlm)
  expect(key ? [key.variable] : []).toEqual(Object.keys(settings).filter(isOfVendor))
})

const VENDOR_KEYS = VENDORS.flatMap(({ keyVariables }) => keyVariables)

test('docs/models.md names the variable of each vendor', () => {
  const text = readPage('docs/models.md')
  const first = VENDORS.flatMap(({ keyVariables }) => keyVariables.slice(0, 1))
  expect(some('variables', first).filter((name) => !text.includes(name))).toEqual([])
})

test('docs/project-settings.md: the files are loaded as they are', async () => {
  await using project = await makeProject(projectFiles())
  const { settings } = await project.load({ isTrusted: true })
  expect(settings.ignored).toEqual([])
  const names = [settings.skills, settings.commands, settings.agents].map((each) => each.map(({ name }) => name))
  expect(names).toEqual([['pdf'], ['review'], ['reviewer']])
})

test('docs/operating.md: the configuration of Prometheus scrapes the route for metrics with a key', () => {
  const [block] = blocks.filter(({ language }) => language === 'yaml')
  expect(parse(block!.text).scrape_configs).toMatchObject([
    { authorization: { credentials_file: expect.any(String) }, static_configs: [{ targets: [expect.any(String)] }] },
  ])
  // The default of `metrics_path`.
  expect(openapi.paths).toHaveProperty(['/metrics'])
})

test('docs/operating.md: the backup has the data, without the key and what belongs to a process', async () => {
  const command = blocks.find(({ language }) => language === 'sh backup')!.text
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
