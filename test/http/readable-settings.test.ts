/** What is stored of a configuration can be read again and means the same, also if a secret is in it. */
import { expect, test } from 'vitest'
import { MAX_RULES } from '../../src/contract/values/permission.ts'
import { setHttp } from './fixtures.ts'

const SECRET = 'q7Zk2mPw'
const SECRETS = { llm_config: { model: 'scripted' }, secrets: { NAME_THAT_IS_LONGER_THAN_THE_VALUE: SECRET } }

/** As long as it may be; it becomes longer when the secret is replaced by its name. */
const DESCRIPTION = 'x'.repeat(2000 - SECRET.length) + SECRET
const agents = { reviewer: { description: DESCRIPTION, prompt: 'You review.' } }
const allow = (name: string) => Array.from({ length: MAX_RULES }, (_, index) => `Bash(${name}-${index}:*)`)

const TOO_LONG = {
  'the description of an agent with a secret': { agents },
  'all rules of two lists': { permission_rules: { allow: allow('one') }, allowed_tools: allow('other') },
}

test.each(Object.entries(TOO_LONG))('%s is refused at a create, which leaves nothing', async (_, fields) => {
  await using http = await setHttp()
  const { status, body } = await http.call('POST', '/conversations', { ...SECRETS, ...fields })
  expect([status, body.error]).toEqual([400, 'invalid_request'])
  expect(body.message).toContain(Object.keys(fields)[0])
  expect(JSON.stringify(body)).not.toContain(SECRET)
  expect((await http.call('GET', '/conversations')).body.items).toEqual([])
})

test('an update that could not be read again is refused, and the conversation stays as it is', async () => {
  await using http = await setHttp()
  const { body: created } = await http.call('POST', '/conversations', SECRETS)
  const { status, body } = await http.call('PUT', `/conversations/${created.id}/config`, { title: 'other', agents })
  expect([status, body.error]).toEqual([400, 'invalid_request'])
  expect(body.message).toContain('agents.reviewer.description')
  const { body: view } = await http.call('GET', `/conversations/${created.id}`)
  expect([view.title, view.last_seq]).toEqual([created.title, created.last_seq])
})

test('a rule with a secret is refused wherever it can be sent: the stored one would match nothing', async () => {
  await using http = await setHttp()
  const { body: created } = await http.call('POST', '/conversations', SECRETS)
  const rules = { deny: [`Read(${SECRET}/**)`] }
  const of = `/conversations/${created.id}`
  const message = { role: 'user', content: 'go' }
  const run_options = { allowed_tools: rules.deny }
  const refusals = [
    ['permission_rules', await http.call('POST', '/conversations', { ...SECRETS, permission_rules: rules })],
    ['allowed_tools', await http.call('POST', '/conversations', { ...SECRETS, ...run_options })],
    ['disallowed_tools', await http.call('POST', '/conversations', { ...SECRETS, disallowed_tools: rules.deny })],
    ['permission_rules', await http.call('PUT', `${of}/permission-rules`, rules)],
    ['allowed_tools', await http.call('POST', `${of}/messages`, { message, run: true, run_options })],
  ] as const
  for (const [field, { status, body }] of refusals) {
    expect([status, body.error]).toEqual([400, 'invalid_request'])
    expect(body.message).toMatch(new RegExp(`^${field} contains the value of a secret`))
  }
})

const COMMAND = { type: 'command', command: 'true' }
const URL_HOOK = { type: 'http', url: 'https://203.0.113.1/' }

test.each<[string, object]>([
  ['compaction', { compaction: { model: SECRET } }],
  ['env', { env: { NAME: SECRET } }],
  ['network', { network: { mode: 'allowlist', deny: [`${SECRET.toUpperCase()}.test`] } }],
  ['hooks.Stop.0.hooks.0: its matcher', { hooks: { Stop: [{ matcher: SECRET, hooks: [COMMAND] }] } }],
  ['hooks.Stop.0.hooks.0.statusMessage', { hooks: { Stop: [{ hooks: [{ ...COMMAND, statusMessage: SECRET }] }] } }],
  ['hooks.Stop.0.hooks.0.headers', { hooks: { Stop: [{ hooks: [{ ...URL_HOOK, headers: { [SECRET]: 'x' } }] }] } }],
  ['llm_config.extra_headers', { llm_config: { model: 'scripted', extra_headers: { [SECRET]: 'x' } } }],
])(
  'a secret in %s is refused at a create and at an update: it would be shown, or mean something else',
  async (name, fields) => {
    await using http = await setHttp()
    const { body: created } = await http.call('POST', '/conversations', SECRETS)
    const requests = [
      await http.call('POST', '/conversations', { ...SECRETS, ...fields }),
      await http.call('PUT', `/conversations/${created.id}/config`, fields),
    ]
    for (const { status, body } of requests) {
      expect([status, body.error]).toEqual([400, 'invalid_request'])
      expect(body.message).toContain(`${name} contains the value of a secret`)
    }
  },
)
