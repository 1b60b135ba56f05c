/** docs/cli.md: its options exist, and its JSON is accepted. test/stories/headless.test.ts runs its commands. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MODE_NAMES } from '../../src/contract/mode-names.ts'
import { REASONING_EFFORTS } from '../../src/contract/values/llm-config.ts'
import type { SettingOption } from '../../src/contract/setting-options.ts'
import { SETTING_OPTIONS, OPTION_SETTINGS } from '../../src/contract/setting-options.ts'
import { commandNamed } from '../../src/cli/command-line/subcommands.ts'
import { helpOf } from '../../src/cli/command-line/help.ts'
import { INSTEAD, withOwnNames } from '../../src/cli/command-line/other-names.ts'
import { OPTIONS } from '../../src/cli/command-line/options.ts'
import { readInputLines } from '../../src/cli/headless/input-lines.ts'
import { effectOnResumed } from '../../src/cli/settings/given-settings.ts'
import { readSettingsFile } from '../../src/cli/settings/settings-file.ts'
import { some } from '../support/some.ts'

const doc = await readFile(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')

const [others = ''] = /^## Names of other agents\n[^]*?^(?=## )/m.exec(doc) ?? []
const own = doc.replace(others, '')

test('each name of another agent in the text is understood, and means the option next to it', () => {
  const pairs = [...others.matchAll(/`--([a-z-]+)` \(`--([a-z-]+)( bypass)?`\)/g)]
  for (const [, other, option, value = ''] of some('pairs', pairs))
    expect(withOwnNames([`--${other}`])).toEqual([`--${option}${value.replace(' ', '=')}`])
  for (const name of ['allowedTools', 'disallowedTools', ...Object.keys(MODE_NAMES)]) expect(others).toContain(name)
})

test('each option of the comparison with other agents exists', () => {
  const cells = others.split('\n').flatMap((line) => /^\| (.*?) \|/.exec(line)?.[1] ?? [])
  const names = some('cells', cells).flatMap((cell) => [...cell.matchAll(/--([a-z][a-z-]+)/g)].map(([, name]) => name!))
  expect(some('options', names).filter((name) => !Object.hasOwn(OPTIONS, name))).toEqual([])
  expect(commandNamed('chat').options.filter((name) => INSTEAD[name] !== undefined)).toEqual([])
})

test('the help names each level of --effort', () => {
  for (const level of REASONING_EFFORTS) expect(OPTIONS.effort.about).toContain(level)
})

test('each option of the page exists, and each option of the chat is on the page', () => {
  const written = new Set([...own.matchAll(/--([a-z][a-z-]+)/g)].map(([, name]) => name!))
  expect(some('options', [...written]).filter((name) => !Object.hasOwn(OPTIONS, name))).toEqual([])
  const { options } = commandNamed('chat')
  expect(options.filter((name) => !written.has(name) && name !== 'print')).toEqual([])
})

test('each option that is a setting is in the help, and on the page with what it does to a resumed conversation', () => {
  const help = helpOf('chat').replaceAll(/\s+/g, ' ')
  for (const setting of some('settings', OPTION_SETTINGS)) {
    const { name, value, about }: SettingOption = SETTING_OPTIONS[setting]
    const written = value === undefined ? `--${name}` : `--${name} ${value}`
    expect(help).toContain(`${written} ${about}`)
    expect(doc).toContain(`| \`${written}\` | ${about} | ${effectOnResumed(setting)} |`)
  }
})

test('the lines of stdin on the page are messages and answers', async () => {
  const [, block] = /^```jsonl\n(\{.*?)^```/ms.exec(doc)!
  const id = '0199a1f3-1b2c-7d3e-8f40-516273849506'
  const lines = block!.replaceAll('_id": "…"', `_id": "${id}"`).replaceAll('"…"', `"${'0'.repeat(64)}"`)
  const read = await Array.fromAsync(
    readInputLines(Readable.from([Buffer.from(lines)]), true, new AbortController().signal),
  )
  expect(read.map((line) => ('answer' in line ? line.answer.type : 'run' in line ? 'run' : line.content))).toEqual([
    'Go on.',
    'run',
    'answer',
    'answer',
    'pause',
  ])
})

test('the settings of the pages are accepted', async () => {
  const chat = await readFile(join(import.meta.dirname, '../../docs/chat.md'), 'utf8')
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-settings-'))
  const path = join(directory, 'settings.json')
  const read: object[] = []
  for (const [, json] of `${doc}${chat}`.matchAll(/^```json\n(.*?)^```/gms)) {
    await writeFile(path, json!, { mode: 0o600 })
    const { notices, settings } = await readSettingsFile(path, new AbortController().signal)
    expect(notices).toEqual([])
    read.push(settings)
  }
  await rm(directory, { recursive: true })
  expect(read).toMatchObject([
    { model: 'gpt-5', reasoning_effort: 'medium' },
    { sandbox: { ssh_agent: true } },
    { chat: { notify: 'osc9' } },
  ])
})
