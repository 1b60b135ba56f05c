/** Commands that a client runs itself, through a real server: waited for, followed, fed, listed and ended. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { UNTIL_ALLOWED } from '../support/background.ts'
import { bash, setStage } from '../support/agent.ts'
import { longEnough } from '../support/long-enough.ts'
import { KEY } from '../support/server.ts'
import type { Answer } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'

let stage: Stage
let id: string
const SECRET = 'sesame-open-the-door'

beforeAll(async () => {
  stage = await setStage(({ body }) => {
    const last = body.messages.at(-1)
    return last?.role === 'user' ? bash(String(last.content)) : { text: 'Done.' }
  })
  id = await stage.create({ secrets: { DOOR: SECRET } })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> =>
  stage.server.call(method, `/conversations/${id}${path}`, body, headers)
const run = async (command: string, more: object = {}) => (await call('POST', '/commands', { command, ...more })).body
const start = async (command: string, more: object = {}): Promise<string> =>
  (await run(command, { background: true, ...more })).command_id
const look = async (commandId: string) => (await call('GET', `/commands/${commandId}`)).body
const output = async (commandId: string, query = '') =>
  (await call('GET', `/commands/${commandId}/output?${query}`)).body
/** All of a stream, read piece by piece until it is said to be complete. */
async function follow(commandId: string, query = 'stream=stdout'): Promise<string> {
  let text = ''
  for (let offset = 0; ;) {
    const piece = await output(commandId, `${query}&offset=${offset}&wait=10`)
    text += piece.text
    offset = piece.next_offset
    if (piece.complete) return text
  }
}
const ended = (commandId: string) => expect.poll(async () => (await look(commandId)).status)

describe('a command that is waited for', () => {
  test('answers with its exit code, its two streams apart, where the shell stands, and how long it took', async () => {
    const { status, body } = await call('POST', '/commands', { command: 'cd /usr; echo out; echo err >&2; (exit 3)' })
    expect(status).toBe(200)
    expect(body).toEqual({
      command_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: 'exited',
      exit_code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      cwd: '/usr',
      execution_time: expect.any(Number),
      truncated: false,
      timed_out: false,
    })
  })

  test('leaves its directory, exports and functions to the next of its session, and to no other', async () => {
    await run('cd /usr; export STAYS=yes; hello() { echo "hello $STAYS"; }', { session_id: 'one' })
    expect(await run('hello; pwd', { session_id: 'one' })).toMatchObject({ stdout: 'hello yes\n/usr\n' })
    expect(await run('hello 2>/dev/null; echo "${STAYS-no}"', { session_id: 'two' })).toMatchObject({ stdout: 'no\n' })
  })

  test('runs in the session `default` when none is named, which `api` names too', async () => {
    await run('export BY_DEFAULT=yes')
    for (const session_id of ['default', 'api'])
      expect(await run('echo $BY_DEFAULT', { session_id })).toMatchObject({ stdout: 'yes\n' })
  })

  test('reads what is sent with it, to the end, and otherwise nothing', async () => {
    expect(await run('cat; echo', { stdin: 'line one\nline two' })).toMatchObject({ stdout: 'line one\nline two\n' })
    expect(await run('wc -c', { stdin: 'x'.repeat(3_000_000) })).toMatchObject({ stdout: '3000000\n' })
    expect(await run('cat')).toMatchObject({ stdout: '', exit_code: 0 })
    expect(await run('true', { stdin: 'unread'.repeat(100_000) })).toMatchObject({ exit_code: 0 })
  })

  test('is ended after its timeout, and its session continues', async () => {
    await run('cd /usr', { session_id: 'timed' })
    const why = { status: 'killed', killed_by: 'timeout', timed_out: true }
    const late = await longEnough(1, async (timeout) => {
      const ended = await run('echo begun; sleep 600', { timeout, session_id: 'timed' })
      expect(ended).toMatchObject(why)
      return ended.stdout !== '' && ended
    })
    expect(late.stdout).toBe('begun\n')
    expect(await look(late.command_id)).toMatchObject(why)
    const { items } = (await call('GET', '/events?types=CommandResult')).body
    expect(items.find((event: { command_id: string }) => event.command_id === late.command_id)).toMatchObject({
      status: 'killed',
      killed_by: 'timeout',
    })
    expect(await run('pwd', { session_id: 'timed' })).toMatchObject({ stdout: '/usr\n' })
  })

  test('waits for its turn in its session, and not for other sessions', async () => {
    const slow = run('until [ -e go ]; do sleep 0.05; done; echo slow', { session_id: 'turn' })
    await expect.poll(async () => (await call('GET', '/commands?limit=1')).body.items[0].status).toBe('running')
    const next = run('echo next', { session_id: 'turn' })
    const statuses = async () => {
      const { items } = (await call('GET', '/commands?limit=10')).body
      const own = items.filter((item: { session_id: string }) => item.session_id === 'turn')
      return own.map((item: { status: string }) => item.status)
    }
    await expect.poll(statuses).toEqual(['queued', 'running'])
    expect((await run('echo other', { session_id: 'turn-2' })).stdout).toBe('other\n')
    expect(await statuses()).toEqual(['queued', 'running'])
    await run('touch go', { session_id: 'turn-2' })
    expect([(await slow).stdout, (await next).stdout]).toEqual(['slow\n', 'next\n'])
  })

  test('that writes much is answered with its beginning and end; all of it can be read', async () => {
    const whole = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('')
    const { command_id, stdout, truncated } = await run('seq 20000')
    expect(truncated).toBe(true)
    expect(stdout.length).toBeLessThan(40_000)
    expect(stdout).toContain(`commands/${command_id}/output?stream=stdout`)
    expect(await follow(command_id, 'max_bytes=10000')).toBe(whole)
  })

  test('is cut for nobody inside a character, wherever the reader stops', async () => {
    const { command_id } = await run(`printf '€%.0s' {1..50}`)
    const first = await output(command_id, 'max_bytes=10')
    expect(first).toMatchObject({ text: '€€€', next_offset: 9, complete: false })
    expect(await output(command_id, 'max_bytes=10&offset=141')).toMatchObject({ text: '€€€', complete: true })
  })
})

describe('who goes away', () => {
  /** Sends the command and breaks the connection once it has begun. */
  async function leave(command: string, more: object): Promise<string> {
    const before = (await call('GET', '/commands?limit=1')).body.items[0]?.id
    const leaving = request(`${stage.server.url}/conversations/${id}/commands`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    leaving.on('error', () => {})
    leaving.end(JSON.stringify({ command, ...more }))
    const newest = await until('the command to run', async () => {
      const [item] = (await call('GET', '/commands?limit=1')).body.items
      return item?.id !== before && item.status === 'running' && item
    })
    leaving.destroy()
    return newest.id
  }

  test('leaves the command to its end, and finds what it came to', async () => {
    const commandId = await leave('until [ -e "$HOME/left" ]; do sleep 0.02; done; echo here', { session_id: 'left' })
    await run('touch "$HOME/left"')
    await ended(commandId).toBe('exited')
    expect(await follow(commandId)).toBe('here\n')
  })

  test('ends the command if the request says so', async () => {
    const commandId = await leave('sleep 60', { session_id: 'left', kill_on_disconnect: true })
    await ended(commandId).toBe('killed')
    expect((await run('echo free', { session_id: 'left' })).stdout).toBe('free\n')
  })
})

describe('a command in the background', () => {
  test('is answered once it has started, and begins as its session stands', async () => {
    await run('cd /usr; export CARRIED=over; greet() { echo "$CARRIED"; }', { session_id: 'base' })
    const { status, body, headers } = await call('POST', '/commands', {
      command: 'greet; pwd; sleep 0.2; echo late; (exit 4)',
      background: true,
      session_id: 'base',
    })
    expect(status).toBe(202)
    expect(body).toEqual({ command_id: expect.any(String), status: 'running', pid: expect.any(Number) })
    expect(headers.get('location')).toBe(`/conversations/${id}/commands/${body.command_id}`)
    expect(await follow(body.command_id)).toBe('over\n/usr\nlate\n')
    expect(await look(body.command_id)).toMatchObject({
      background: true,
      session_id: 'base',
      status: 'exited',
      exit_code: 4,
      pid: body.pid,
      started_at: expect.any(String),
      ended_at: expect.any(String),
      execution_time: expect.any(Number),
    })
  })

  test('does not hold up its session, changes nothing in it, and starts also while the session is busy', async () => {
    const busy = run('export LATER=no; until [ -e go ]; do sleep 0.05; done; export LATER=yes', { session_id: 'held' })
    await until('the session to be busy', async () => {
      const { items } = (await call('GET', '/shell-sessions')).body
      return items.some((item: any) => item.id === 'held' && item.status === 'busy') // eslint-disable-line typescript/no-explicit-any
    })
    const commandId = await start('cd /tmp; export MINE=1; sleep 0.1; echo done', { session_id: 'held' })
    expect(await follow(commandId)).toBe('done\n')
    expect((await look(commandId)).status).toBe('exited')
    await run('touch go', { session_id: 'another' })
    await busy
    expect(await run('echo $LATER${MINE-}', { session_id: 'held' })).toMatchObject({ stdout: 'yes\n' })
  })

  test('has no default time limit, but accepts one', async () => {
    const commandId = await start('sleep 60', { timeout: 0.2 })
    await ended(commandId).toBe('killed')
    expect(await look(commandId)).toMatchObject({ killed_by: 'timeout', timed_out: true })
  })

  test('is fed as long as its input is open', async () => {
    const commandId = await start('while read -r line; do echo "got $line"; done; echo end')
    expect((await call('POST', `/commands/${commandId}/input`, { text: 'one\n' })).status).toBe(204)
    await expect.poll(async () => (await output(commandId)).text).toBe('got one\n')
    expect((await call('POST', `/commands/${commandId}/input`, { text: 'two\n', eof: true })).status).toBe(204)
    expect(await follow(commandId)).toBe('got one\ngot two\nend\n')
    expect((await call('POST', `/commands/${commandId}/input`, { text: 'three\n' })).body.error).toBe('input_closed')
  })

  test('reads what is sent with it first, and its end at once where nothing is to follow', async () => {
    const commandId = await start('cat', { stdin: 'first\n' })
    await call('POST', `/commands/${commandId}/input`, { text: 'second\n', eof: true })
    expect(await follow(commandId)).toBe('first\nsecond\n')
    expect(await follow(await start('cat; echo end', { keep_stdin_open: false }))).toBe('end\n')
  })

  test('is shown live: by byte offset to who waits, and on the event stream to who asks for deltas', async () => {
    const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream?deltas=true`)
    const commandId = await start('echo one; read -r; echo two; echo three >&2')
    const first = await output(commandId, 'wait=10')
    expect(first).toMatchObject({ offset: 0, text: 'one\n', next_offset: 4, status: 'running', complete: false })
    await call('POST', `/commands/${commandId}/input`, { text: 'on\n' })
    expect(await output(commandId, 'wait=10&offset=4')).toMatchObject({ text: 'two\n', next_offset: 8 })
    expect(await follow(commandId, 'stream=stderr')).toBe('three\n')
    await stream.until(({ event, data }) => event === 'CommandResult' && data.command_id === commandId)
    stream.close()
    const deltas = stream.frames.filter(
      ({ event, data }) => event === 'ToolOutputDelta' && data.command_id === commandId,
    )
    expect(deltas.map(({ data: { stream: name, offset, text } }) => [name, offset, text])).toEqual([
      ['stdout', 0, 'one\n'],
      ['stdout', 4, 'two\n'],
      ['stderr', 0, 'three\n'],
    ])
    expect(deltas.every((frame) => !frame.id)).toBe(true)
  })
})

describe('a command ends', () => {
  test('when it is deleted, with all that it started; what is known of it stays', async () => {
    const commandId = await start('sleep 71 & sleep 72 >/dev/null 2>&1 & echo ready; sleep 73')
    await output(commandId, 'wait=10')
    expect((await call('DELETE', `/commands/${commandId}`)).status).toBe(204)
    expect((await call('GET', '/processes')).body.items).toEqual([])
    expect(await look(commandId)).toMatchObject({ status: 'killed', killed_by: 'request' })
    expect(await output(commandId)).toMatchObject({ text: 'ready\n', complete: true })
  })

  test('when it is deleted while a client waits for it, which is informed', async () => {
    const waiting = run('echo ready; sleep 60', { session_id: 'doomed' })
    await expect.poll(async () => (await call('GET', '/commands?limit=1')).body.items[0].status).toBe('running')
    const [{ id: command_id }] = (await call('GET', '/commands?limit=1')).body.items
    await expect.poll(async () => JSON.stringify(await output(command_id))).toContain('ready')
    expect((await call('DELETE', `/commands/${command_id}`)).status).toBe(204)
    expect(await waiting).toMatchObject({ command_id, status: 'killed', killed_by: 'request', stdout: 'ready\n' })
    expect((await run('echo on', { session_id: 'doomed' })).stdout).toBe('on\n')
  })

  test('with its background processes, if it had ended before it is deleted; idempotent', async () => {
    const { command_id, background_pid } = await run('sleep 74 >/dev/null & (while sleep 0.01; do :; done) & true')
    expect(background_pid).toEqual(expect.any(Number))
    for (let i = 0; i < 2; i++) expect((await call('DELETE', `/commands/${command_id}`)).status).toBe(204)
    expect((await call('GET', '/processes')).body.items).toEqual([])
    expect(await look(command_id)).toMatchObject({ status: 'exited', exit_code: 0 })
  })

  test('when it floods a client that waits: what it wrote until then is kept', async () => {
    const flood = await run('yes', { session_id: 'flood' })
    expect(flood).toMatchObject({
      status: 'killed',
      killed_by: 'output_limit',
      timed_out: false,
      truncated: true,
      note: expect.stringMatching(/more output than a file may hold/),
    })
    const { text, complete } = await output(flood.command_id, `offset=${64 * 1024 ** 2 - 4}`)
    expect([text, complete]).toEqual(['y\ny\n', true])
  })
})

describe('what a command leaves behind', () => {
  test('keeps writing to the output of its command, which reports when nothing more will come', async () => {
    const own = { session_id: 'leaves-behind' } // in the workdir
    const { command_id, stdout } = await run(`{ ${UNTIL_ALLOWED}; echo late; echo wrong >&2; } & echo now`, own)
    expect(stdout).toBe('now\n')
    expect(await output(command_id)).toMatchObject({ text: 'now\n', status: 'exited', complete: false })
    await run('touch allowed', own)
    expect(await follow(command_id)).toBe('now\nlate\n')
    expect(await follow(command_id, 'stream=stderr')).toBe('wrong\n')
  })
})

describe('secrets', () => {
  test('are variables of commands and never shown', async () => {
    const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream?deltas=true`)
    const done = await run('echo "${#DOOR} $DOOR"; cat', { stdin: `typed ${SECRET}` })
    expect(done.stdout).toBe(`${SECRET.length} <secret:DOOR>\ntyped <secret:DOOR>`)
    const commandId = await start('echo $DOOR; sh -c "sleep 60; :" "$DOOR"')
    const { text } = await output(commandId, 'wait=10')
    expect(text).toBe('<secret:DOOR>\n')
    await expect
      .poll(async () => (await call('GET', '/processes')).body.items.map((item: any) => item.command_line)) // eslint-disable-line typescript/no-explicit-any
      .toContain('sh -c sleep 60; : <secret:DOOR>')
    await call('DELETE', `/commands/${commandId}`)
    await stream.until(({ event, data }) => event === 'CommandResult' && data.command_id === commandId)
    stream.close()
    const everything = JSON.stringify([stream.frames, await stage.events(id), (await call('GET', '/commands')).body])
    expect(everything).not.toContain(SECRET)
  })

  test('are refused in the text of a command, where everybody would see them', async () => {
    const { status, body } = await call('POST', '/commands', { command: `echo ${SECRET}` })
    expect([status, body.error]).toEqual([400, 'invalid_request'])
    expect(body.message).toMatch(/\$NAME/)
    expect(JSON.stringify(body)).not.toContain(SECRET)
  })
})

describe('the log', () => {
  test('reports each command that has ended, without its output, and the agent is not informed', async () => {
    const { command_id } = await run('echo not-in-the-log', { session_id: 'logged' })
    const event = (await stage.events(id, 'types=CommandResult')).find((each) => each.command_id === command_id)
    expect(event).toMatchObject({
      type: 'CommandResult',
      source: 'environment',
      command: 'echo not-in-the-log',
      session_id: 'logged',
      status: 'exited',
      exit_code: 0,
      cwd: expect.any(String),
      execution_time: expect.any(Number),
    })
    expect(event).not.toHaveProperty('stdout')
    await stage.say(id, 'echo from the agent')
    expect(JSON.stringify(stage.model.requests.at(-1))).not.toContain('not-in-the-log')
  })
})

describe("the agent's own session", () => {
  test('is shared between its calls, and refused during one', async () => {
    await stage.say(id, 'export OF_AGENT=yes; cd /usr')
    expect(await run('echo $OF_AGENT; pwd; cd /', { session_id: 'agent' })).toMatchObject({ stdout: 'yes\n/usr\n' })
    const [result] = (await stage.say(id, 'pwd')).filter((event) => event.type === 'ToolResult')
    expect(result.output.stdout).toBe('/\n')

    const saying = stage.say(id, 'until [ -e "$HOME/free" ]; do sleep 0.02; done')
    await expect
      .poll(async () => (await call('GET', '/shell-sessions')).body.items)
      .toContainEqual(expect.objectContaining({ id: 'agent', status: 'busy', used_by_agent: true }))
    expect((await call('POST', '/commands', { command: 'pwd', session_id: 'agent' })).body.error).toBe('session_busy')
    expect((await call('DELETE', '/shell-sessions/agent')).body.error).toBe('session_busy')
    const beside = await start('pwd', { session_id: 'agent' })
    expect(await follow(beside)).toBe('/\n')
    await run('touch "$HOME/free"')
    await saying
    expect(await run('pwd', { session_id: 'agent' })).toMatchObject({ stdout: '/\n' })
  })
})

describe('lists', () => {
  test('of commands are paged, newest first, and stable while more are run', async () => {
    const other = await stage.create()
    const path = `/conversations/${other}/commands`
    const post = async (command: string) => (await stage.server.call('POST', path, { command })).body.command_id
    const ids: string[] = []
    for (const n of [1, 2, 3, 4, 5]) ids.unshift(await post(`echo ${n}`))
    const seen: string[] = []
    let page = (await stage.server.call('GET', `${path}?limit=2`)).body
    await post('echo meanwhile')
    for (;;) {
      seen.push(...page.items.map((item: { id: string }) => item.id))
      if (page.next_page_id === null) break
      page = (await stage.server.call('GET', `${path}?limit=2&page_id=${page.next_page_id}`)).body
    }
    expect(seen).toEqual(ids)
  })
})

describe('limits', () => {
  test('apply to concurrent commands, and are reported', async () => {
    const other = await stage.create()
    const path = `/conversations/${other}/commands`
    const begin = (n: number) => stage.server.call('POST', path, { command: `sleep 8${n}`, background: true })
    const started = await Promise.all(Array.from({ length: 17 }, (_, n) => begin(n)))
    const refused = started.filter(({ status }) => status !== 202)
    expect(refused.map(({ status, body }) => [status, body.error, body.details.limit])).toEqual([
      [429, 'limit_reached', 16],
    ])
    expect(refused[0]?.headers.get('retry-after')).toMatch(/^\d+$/)
    const [free] = started.filter(({ status }) => status === 202)
    await stage.server.call('DELETE', `${path}/${free?.body.command_id}`)
    expect((await begin(99)).status).toBe(202)
    expect((await stage.server.call('DELETE', `/conversations/${other}`)).status).toBe(204)
  })

  test('hold for shell sessions', async () => {
    const other = await stage.create()
    const path = `/conversations/${other}`
    const use = (n: number) => stage.server.call('POST', `${path}/commands`, { command: 'true', session_id: `s${n}` })
    const used = await Promise.all(Array.from({ length: 17 }, (_, n) => use(n)))
    expect(used.filter(({ status }) => status === 200)).toHaveLength(16)
    expect(used.find(({ status }) => status !== 200)).toMatchObject({ status: 429, body: { error: 'limit_reached' } })
    const { items } = (await stage.server.call('GET', `${path}/shell-sessions`)).body
    expect(items).toHaveLength(16)
    expect((await stage.server.call('DELETE', `${path}/shell-sessions/${items[0].id}`)).status).toBe(204)
    expect((await use(16)).status).toBe(200)
    expect((await stage.server.call('DELETE', path)).status).toBe(204)
  })
})

describe('refused is', () => {
  const unknown = '0198c5a0-0000-7000-8000-000000000000'

  test.each([
    ['a body that is none', '[]'],
    ['no command', {}],
    ['an empty command', { command: '' }],
    ['a field that there is not', { command: 'true', shell: 'zsh' }],
    ['a timeout of nothing', { command: 'true', timeout: 0 }],
    ['a timeout beyond a day', { command: 'true', timeout: 86_401 }],
    ['a session that would be a path', { command: 'true', session_id: '../agent' }],
    ['a session like the shell of one command', { command: 'true', session_id: `@${unknown}` }],
    ['an end with a client that does not wait', { command: 'true', background: true, kill_on_disconnect: true }],
  ])('%s', async (_, body) => {
    const answer = await call('POST', '/commands', body)
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['GET', `/commands/${unknown}`, 404, 'command_not_found'],
    ['GET', `/commands/${unknown}/output`, 404, 'command_not_found'],
    ['POST', `/commands/${unknown}/input`, 404, 'command_not_found'],
    ['DELETE', `/commands/${unknown}`, 404, 'command_not_found'],
    ['GET', '/commands/..%2f..%2fmeta', 400, 'invalid_request'],
    ['GET', '/commands?limit=0', 400, 'invalid_request'],
    ['GET', '/commands?page_id=nonsense', 400, 'invalid_cursor'],
    ['PUT', `/commands/${unknown}`, 405, 'method_not_allowed'],
    ['DELETE', '/shell-sessions/nobody', 404, 'session_not_found'],
    ['DELETE', '/shell-sessions/..%2fcommands', 404, 'session_not_found'],
  ])('%s %s', async (method, path, status, error) => {
    const answer = await call(method, path, method === 'POST' ? {} : undefined)
    expect([answer.status, answer.body.error]).toEqual([status, error])
  })

  test.each(['stream=stdin', 'offset=-1', 'offset=x', 'max_bytes=1', 'max_bytes=9999999', 'wait=61', 'what=1'])(
    'output?%s',
    async (query) => {
      const { command_id } = await run('true')
      const answer = await call('GET', `/commands/${command_id}/output?${query}`)
      expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request'])
    },
  )

  test('a command of a conversation that is another, or none', async () => {
    const { command_id } = await run('true')
    const other = await stage.create()
    const foreign = await stage.server.call('GET', `/conversations/${other}/commands/${command_id}`)
    expect([foreign.status, foreign.body.error]).toEqual([404, 'command_not_found'])
    const none = await stage.server.call('POST', `/conversations/${unknown}/commands`, { command: 'true' })
    expect([none.status, none.body.error]).toEqual([404, 'conversation_not_found'])
  })
})

test('a conversation is deleted with the commands that run in it', async () => {
  const other = await stage.create()
  const path = `/conversations/${other}`
  const waiting = stage.server.call('POST', `${path}/commands`, { command: 'sleep 90' })
  await expect
    .poll(async () => (await stage.server.call('GET', `${path}/commands`)).body.items[0]?.status)
    .toBe('running')
  const { pid } = (await stage.server.call('POST', `${path}/commands`, { command: 'sleep 91', background: true })).body
  expect((await stage.server.call('DELETE', path)).status).toBe(204)
  expect(() => process.kill(pid, 0)).toThrow(/ESRCH/)
  expect((await waiting).body).toMatchObject({ status: 'killed' })
  expect((await stage.server.call('GET', `${path}/commands`)).status).toBe(410)
})
