import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'

const SCRIPT = {
  replies: [{ turns: [{ ...bash('echo the-words-of-the-user'), text: 'Looking.' }, { text: 'Seen.' }] }],
}
const SECRET = 'sk-a-secret-nobody-may-see'

test('payloads to and from the model are logged whole when asked for, without secrets, and not at all otherwise', async () => {
  for (const asked of [true, false]) {
    await using stage = await setStage(SCRIPT, { env: { OPENHANDS_LOG_LLM_PAYLOADS: String(asked) } })
    const id = await stage.create({ llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: SECRET } })
    await stage.say(id, `the-words-of-the-user ${SECRET}`)
    expect(stage.model.requests[0]!.headers.authorization).toBe(`Bearer ${SECRET}`)

    await stage.server.stop()
    const output = stage.server.output()
    const lines = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const payloads = lines.filter((line) => line.msg === 'llm payload')
    expect(payloads.map((line) => line.direction)).toEqual(asked ? ['request', 'response', 'request', 'response'] : [])
    if (asked) expect(payloads[0].body).toBe(stage.model.requests[0]!.text)
    expect(output).not.toContain(SECRET)
    if (!asked) expect(output).not.toContain('the-words-of-the-user')
  }
})

test('the key of a conversation is nowhere in clear text on disk, and never returned', async () => {
  await using stage = await setStage(SCRIPT)
  const { server, model } = stage
  const llm_config = {
    model: 'scripted',
    base_url: model.baseUrl,
    api_key: SECRET,
    extra_headers: { 'x-token': 'another-secret-value' },
  }
  const created = await server.call('POST', '/conversations', { llm_config })
  const id = created.body.id
  await stage.say(id, `I also write it here: ${SECRET}`)

  expect(created.body.llm_config).toMatchObject({ api_key: '**********', extra_headers: { 'x-token': '**********' } })
  expect(model.requests[0]!.headers).toMatchObject({
    authorization: `Bearer ${SECRET}`,
    'x-token': 'another-secret-value',
  })
  const { stdout } = await promisify(execFile)('grep', [
    '-rlE',
    `${SECRET}|another-secret-value`,
    server.dataDir,
  ]).catch((error) => error)
  expect(stdout).toBe('')

  await server.restart('SIGKILL')
  await stage.say(id, 'again')
  expect(model.requests.at(-1)!.headers.authorization, 'the key survives a restart').toBe(`Bearer ${SECRET}`)
})
