/** Secrets as the agent's commands meet them. */
import { writeFile } from 'node:fs/promises'
import { afterAll, expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import type { Stage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { subscribe } from '../support/stream.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

/** Runs the command that the message is, in the session that is named before it. */
const SCRIPT = ({ body }: { body: { messages: readonly { role: string; content?: unknown }[] } }) => {
  const last = body.messages.at(-1)!
  if (last.role !== 'user') return { text: 'Done.' }
  const said = typeof last.content === 'string' ? last.content : (last.content as { text: string }[])[0]!.text
  const [, session, command] = /^(\w+): ([^]*)$/.exec(said)!
  return bash(command!, { session_id: session })
}

async function outputOf(stage: Stage, id: string, said: string): Promise<string> {
  const events = await stage.say(id, said)
  return events.find((event) => event.type === 'ToolResult').output.stdout
}

/** Its length tells that it is there; its text would be hidden. */
const LENGTHS = 'echo ${#TOKEN} ${#OTHER} $(sh -c \'printf %s "$TOKEN" | wc -c\')'

test('are in the next command of every session, follow each change, survive a restart, and are gone when deleted', async () => {
  await using stage = await setStage(SCRIPT, shared)
  const { server } = stage
  const id = await stage.create({ secrets: { TOKEN: 'at-creation' } })
  const put = (secrets: object) => server.call('PUT', `/conversations/${id}/secrets`, { secrets })
  expect(await outputOf(stage, id, `agent: ${LENGTHS}`)).toBe('11 0 11\n')
  expect((await put({ TOKEN: 'somewhat-longer', OTHER: 'another-one' })).status).toBe(200)
  for (const session of ['agent', 'second'])
    expect(await outputOf(stage, id, `${session}: ${LENGTHS}`)).toBe('15 11 15\n')
  await server.restart('SIGKILL')
  expect(await outputOf(stage, id, `agent: ${LENGTHS}`)).toBe('15 11 15\n')
  expect((await server.call('DELETE', `/conversations/${id}/secrets/TOKEN`)).status).toBe(204)
  for (const session of ['agent', 'second'])
    expect(await outputOf(stage, id, `${session}: ${LENGTHS}`)).toBe('0 11 0\n')
  await server.restart()
  expect(await outputOf(stage, id, `agent: ${LENGTHS}`)).toBe('0 11 0\n')
})

test('can change while the agent runs, and hold from the next command on', async () => {
  const script = ({ body }: { body: { messages: readonly { role: string }[] } }) => {
    const answers = body.messages.filter(({ role }) => role === 'assistant').length
    return [
      bash('echo begun; while [ ! -e go ]; do sleep 0.02; done; echo [${#TOKEN}]'),
      bash('echo [${#TOKEN}] $TOKEN'),
      { text: 'Done.' },
    ][answers]!
  }
  await using stage = await setStage(script, shared)
  const id = await stage.create()
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream?deltas=true`)
  await stage.server.call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'go' },
    run: true,
  })
  await stream.until(({ event }) => event === 'ToolOutputDelta')
  expect(
    (await stage.server.call('PUT', `/conversations/${id}/secrets`, { secrets: { TOKEN: 'while-it-runs' } })).status,
  ).toBe(200)
  await writeFile(`${workdir}/go`, '')
  await stream.until(({ event }) => event === 'Result')
  stream.close()
  const outputs = (await stage.events(id, 'types=ToolResult')).map((event) => event.output.stdout)
  expect(outputs).toEqual(['begun\n[0]\n', '[13] <secret:TOKEN>\n'])
})

test('feed git, which writes them nowhere', async () => {
  await using stage = await setStage(SCRIPT, shared)
  const token = 'ghp_abcdefghijklmnop'
  const id = await stage.create({ secrets: { GITHUB_TOKEN: token } })
  const command = [
    'git init -q r && cd r && git remote add origin https://github.com/o/r.git',
    String.raw`printf 'protocol=https\nhost=github.com\n\n' | git credential fill | grep -c ^password=ghp_`,
    'grep -r ghp_ .git | wc -l',
  ].join('\n')
  const events = await stage.say(id, `agent: ${command}`)
  expect(events.find((event) => event.type === 'ToolResult').output.stdout).toBe('1\n0\n')
})

test('a shell that made one of the server’s names read-only, or is in POSIX mode, continues, and keeps no secret', async () => {
  await using stage = await setStage(SCRIPT, shared)
  const id = await stage.create({ secrets: { TOKEN: 'a-secret-value' } })
  await stage.say(id, 'agent: readonly TOKEN; echo "[${#TOKEN}]"')
  expect(await outputOf(stage, id, `agent: ${LENGTHS}`)).toBe('14 0 14\n')
  await stage.say(id, 'posix: set -o posix')
  expect(await outputOf(stage, id, `posix: ${LENGTHS}`)).toBe('14 0 14\n')
  await stage.server.call('DELETE', `/conversations/${id}/secrets/TOKEN`)
  expect(await outputOf(stage, id, `posix: ${LENGTHS}`)).toBe('0 0 0\n')
})
