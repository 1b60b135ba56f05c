/** The stored settings of a new conversation: each that was sent is in them. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../../src/contract/conversation.ts'
import { namesIn } from '../../../src/contract/setting-fields.ts'
import { SETTINGS } from '../../../src/contract/settings.ts'
import { newSettings } from '../../../src/conversations/config/settings.ts'
import { Settings } from '../../../src/state/settings.ts'
import { VALUES } from '../../support/setting-values.ts'

const request = CreateConversation.parse({
  ...VALUES,
  title: 'totals of secret-value',
  labels: ['secret-value', 'urgent'],
  metadata: { team: 'secret-value' },
})
const stored = newSettings({
  request,
  idempotency: undefined,
  llm: { model: 'gpt-5' },
  workdir: '/here',
  additionalDirectories: ['/also'],
  tools: ['Bash'],
  hooks: request.hooks,
  project: undefined,
  mcp: {},
  agents: request.agents,
  redact: (text) => text.replaceAll('secret-value', '*'),
})

test('each setting that was sent is stored, and none has a secret', () => {
  const names = namesIn('create')
  expect(names.length).toBeGreaterThan(20)
  for (const name of names) expect(stored, name).toHaveProperty(name)
  const sent = names.filter((name) => SETTINGS[name].from === 'sent')
  for (const name of sent) expect(stored[name], name).toEqual(request[name])
  expect(stored).toMatchObject({ title: 'totals of *', labels: ['*', 'urgent'], metadata: { team: '*' } })
  expect(JSON.stringify(stored)).not.toContain('secret-value')
})

test('the log gives back the settings that it was given', () => {
  expect(Settings.parse(JSON.parse(JSON.stringify(stored)))).toEqual(stored)
})
