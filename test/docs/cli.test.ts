/** docs/cli.md: its options exist, and its JSON is accepted. test/stories/headless.test.ts runs its commands. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandNamed } from '../../src/cli/command-line/commands.ts'
import { OPTIONS } from '../../src/cli/command-line/options.ts'
import { readSettingsFile } from '../../src/cli/settings/settings-file.ts'

const doc = await readFile(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')

test('each option of the page exists, and each option of the chat is on the page', () => {
  const written = new Set([...doc.matchAll(/--([a-z][a-z-]+)/g)].map(([, name]) => name!))
  expect([...written].filter((name) => !Object.hasOwn(OPTIONS, name))).toEqual([])
  const { options } = commandNamed('chat')
  expect(options.filter((name) => !written.has(name) && name !== 'print')).toEqual([])
})

test('the settings of the page are accepted', async () => {
  const [, json] = /^```json\n(.*?)^```/ms.exec(doc)!
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-settings-'))
  await writeFile(join(directory, 'settings.json'), json!, { mode: 0o600 })
  const { notices, settings } = await readSettingsFile(join(directory, 'settings.json'))
  await rm(directory, { recursive: true })
  expect(notices).toEqual([])
  expect(settings).toMatchObject({ model: 'gpt-5', reasoning_effort: 'medium' })
})
