/** Hosts that a user is asked about, changes of the policy while shells run, and what the operator permits. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KEY, launch } from '../support/server.ts'
import { connect } from '../support/socket.ts'
import type { NetworkScene } from '../support/network.ts'
import { setNetworkScene } from '../support/network.ts'
import type { PackageServer } from '../support/package-server.ts'
import { startPackageServer } from '../support/package-server.ts'
import { answer as answerRequest, requestsOf } from './requests.ts'

let outside: PackageServer
let scene: NetworkScene

beforeAll(async () => {
  outside = await startPackageServer()
  scene = await setNetworkScene({ 'a.test': outside.port, 'b.test': outside.port })
})
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]()
  await outside?.[Symbol.asyncDispose]()
})

const at = (name: string) => `${name}:${outside.port}`
const fetched = (name: string) => `curl -sS -m 90 http://${at(name)}/hello`
const HELLO = 'hello from outside\n0'
const ASKING = { mode: 'allowlist', ask: true }

async function waiting(id: string): Promise<{ request_id: string; payload: object }> {
  await expect.poll(() => requestsOf(scene.server.call, id, 'network')).toHaveLength(1)
  return (await requestsOf(scene.server.call, id, 'network'))[0]
}
const decide = (id: string, request: string, body: object) =>
  answerRequest(scene.server.call, id, request, { kind: 'network', ...body })
const configure = (id: string, network: object) => scene.server.call('PUT', `/conversations/${id}/config`, { network })

describe('a host that no entry lists', () => {
  test('waits for the user, who allows it once', async () => {
    const id = await scene.create({ network: ASKING })
    const answer = scene.run(id, fetched('a.test'))
    const { request_id, payload } = await waiting(id)
    expect(payload).toEqual({ host: 'a.test', port: outside.port })
    expect(await decide(id, request_id, { behavior: 'allow' })).toMatchObject({ status: 200, body: { pending: 0 } })
    expect(await answer).toBe(HELLO)
    expect((await decide(id, request_id, { behavior: 'allow' })).status, 'the same again').toBe(200)
    expect((await decide(id, request_id, { behavior: 'deny' })).body.error).toBe('already_answered')
    const again = scene.run(id, fetched('a.test'))
    const second = await waiting(id)
    expect(second.request_id).not.toBe(request_id)
    const socket = await connect(scene.server.url, `/conversations/${id}/ws`)
    socket.say({ type: 'answer', request_id: second.request_id, answer: { kind: 'network', behavior: 'deny' } })
    const ack = { of: 'answer', result: { pending: 0 } }
    expect(await socket.until(({ type }) => type === 'ack')).toMatchObject(ack)
    socket.close()
    expect(await again).toContain('the user did not allow it')
    const events = await scene.events(id, 'types=RequestOpened,RequestAnswered,RequestClosed')
    expect(events.map(({ type, kind, answer: given, answered_by }) => [type, kind, given, answered_by])).toEqual([
      ['RequestOpened', 'network', undefined, undefined],
      ['RequestAnswered', 'network', { behavior: 'allow' }, 'user'],
      ['RequestOpened', 'network', undefined, undefined],
      ['RequestAnswered', 'network', { behavior: 'deny' }, 'user'],
    ])
  })

  test('is not asked about again when the answer is to be remembered', async () => {
    const id = await scene.create({ network: ASKING })
    const answer = scene.run(id, fetched('a.test'))
    await decide(id, (await waiting(id)).request_id, { behavior: 'allow', remember: true })
    expect(await answer).toBe(HELLO)
    expect(await scene.run(id, fetched('a.test'))).toBe(HELLO)
    const refused = scene.run(id, fetched('b.test'))
    await decide(id, (await waiting(id)).request_id, { behavior: 'deny', remember: true })
    expect(await refused).toContain('did not allow')
    expect(await scene.run(id, fetched('b.test'))).toContain('on the deny list')
    const { body } = await scene.server.call('GET', `/conversations/${id}`)
    expect(body.network).toEqual({ ...ASKING, allow: [at('a.test')], deny: [at('b.test')] })
  })

  test('has one answer, however many come at once, and only that one is remembered', async () => {
    const id = await scene.create({ network: ASKING })
    const fetching = scene.run(id, fetched('a.test'))
    const { request_id } = await waiting(id)
    const bodies = Array.from({ length: 12 }, (_, at) => ({ behavior: at % 2 ? 'deny' : 'allow', remember: true }))
    const answers = await Promise.all(bodies.map((body) => decide(id, request_id, body)))
    const [stored, ...others] = await scene.events(id, 'types=RequestAnswered')
    expect(others).toEqual([])
    const { behavior } = stored.answer
    expect(answers.map(({ status, body }) => body.error ?? status)).toEqual(
      bodies.map((body) => (body.behavior === behavior ? 200 : 'already_answered')),
    )
    const { network } = (await scene.server.call('GET', `/conversations/${id}`)).body
    expect(network).toEqual({ ...ASKING, [behavior]: [at('a.test')] })
    expect((await fetching) === HELLO).toBe(behavior === 'allow')
  })

  test('cannot be remembered in a policy that is full, and can still be decided', async () => {
    const full = { ...ASKING, allow: Array.from({ length: 1000 }, (_, index) => `host${index}.test`) }
    const id = await scene.create({ network: full })
    const answer = scene.run(id, fetched('a.test'))
    const { request_id } = await waiting(id)
    const refusal = await decide(id, request_id, { behavior: 'allow', remember: true })
    expect(refusal).toMatchObject({ status: 429, body: { error: 'limit_reached' } })
    expect(await decide(id, request_id, { behavior: 'allow' })).toMatchObject({ status: 200, body: { pending: 0 } })
    expect(await answer).toBe(HELLO)
    expect((await scene.server.call('GET', `/conversations/${id}`)).body.network).toEqual(full)
  })

  test('whose name has the value of a secret is in no policy: it would be shown, or be another host', async () => {
    const secrets = { TOKEN: 'value-of-token' }
    const network = { ...ASKING, allow: ['value-of-token.test'] }
    const id = await scene.create({ network: ASKING, secrets })
    const model = { llm_config: { model: 'scripted' } }
    const refusals = [
      await configure(id, network),
      await scene.server.call('POST', '/conversations', { ...model, network, secrets }),
    ]
    for (const { status, body } of refusals) expect([status, body.error]).toEqual([400, 'invalid_request'])
    expect((await scene.server.call('GET', `/conversations/${id}`)).body.network).toEqual(ASKING)
  })

  test.each(['value-of-token', 'Value-Of-Token'])(
    'whose name a command made of the secret %s is shown nowhere',
    async (secret) => {
      const secrets = { TOKEN: secret }
      const id = await scene.create({ network: { ...ASKING, log: true }, secrets })
      const answer = scene.run(id, 'curl -sS -m 90 http://$TOKEN.test/')
      const { request_id, payload } = await waiting(id)
      expect(payload).toEqual({ host: '<secret:TOKEN>.test', port: 80 })
      const refusal = await decide(id, request_id, { behavior: 'deny', remember: true })
      expect(refusal).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
      expect((await decide(id, request_id, { behavior: 'deny' })).status).toBe(200)
      expect(await answer).toContain('refused <secret:TOKEN>.test:80')
      await expect.poll(() => scene.events(id, 'types=NetworkAccess')).toHaveLength(1)
      const events = await scene.events(id, 'types=RequestOpened,RequestAnswered,NetworkAccess,CommandResult')
      for (const text of [await answer, JSON.stringify(events)])
        expect(text.toLowerCase()).not.toContain('value-of-token')
    },
  )

  test('is decided by a change of the policy', async () => {
    const id = await scene.create({ network: ASKING })
    const answer = scene.run(id, fetched('a.test'))
    await waiting(id)
    expect((await configure(id, { mode: 'allowlist', allow: [at('a.test')] })).status).toBe(200)
    expect(await answer).toBe(HELLO)
    expect(await scene.events(id, 'types=RequestAnswered')).toMatchObject([
      { kind: 'network', answer: { behavior: 'allow' }, answered_by: 'policy' },
    ])
  })

  test('is denied when the server stops, however it ends', async () => {
    await using own = await setNetworkScene({ 'a.test': outside.port })
    const id = await own.create({ network: ASKING })
    const list = () => requestsOf(own.server.call, id, 'network')
    await own.server.call('POST', `/conversations/${id}/commands`, { command: fetched('a.test'), background: true })
    await expect.poll(list).toHaveLength(1)
    await own.server.restart('SIGKILL')
    const [request] = await own.events(id, 'types=RequestOpened')
    await expect
      .poll(async () => await own.events(id, 'types=RequestAnswered,RequestClosed'))
      .toMatchObject([
        { type: 'RequestClosed', kind: 'network', request_id: request.request_id, reason: 'server_restart' },
      ])
    expect(await list()).toEqual([])
    const late = await answerRequest(own.server.call, id, request.request_id, { kind: 'network', behavior: 'allow' })
    expect(late).toMatchObject({ status: 409, body: { error: 'request_closed' } })
  })
})

describe('a change of the policy', () => {
  test('to fewer hosts holds at once in shells that run, also for connections that are open', async () => {
    const id = await scene.create({ network: { mode: 'allowlist', allow: [at('a.test')] } })
    expect(await scene.run(id, fetched('a.test'))).toBe(HELLO)
    const held = scene.run(
      id,
      `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${at('a.test')} HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3; touch open; cat <&3; echo closed`,
    )
    await expect
      .poll(async () => (await scene.server.call('GET', `/conversations/${id}/file-info/open`)).status)
      .toBe(200)
    await configure(id, { mode: 'allowlist', allow: [] })
    expect(await held).toContain('closed\n')
    expect(await scene.run(id, fetched('a.test'))).toContain('not on the allow list')
    await configure(id, { mode: 'allowlist', allow: [at('a.test')] })
    expect(await scene.run(id, fetched('a.test'))).toBe(HELLO)
  })

  test('to another mode ends the shells, and their state continues in the next', async () => {
    const id = await scene.create({ network: { mode: 'allowlist', allow: [at('a.test')] } })
    await scene.run(id, 'export KEPT=yes MY_PROXY=x')
    expect((await configure(id, { mode: 'none' })).status).toBe(200)
    expect(await scene.run(id, `${fetched('a.test')}; echo $KEPT; env | grep -c 3128`)).toMatch(/^yes\n0\n/)
    await configure(id, { mode: 'open' })
    expect(
      await scene.run(id, `curl -sS http://127.0.0.1:${outside.port}/hello; echo $KEPT; env | grep -c 3128`),
    ).toMatch(/^hello from outside\nyes\n0\n/)
    await configure(id, { mode: 'allowlist', allow: [at('a.test')] })
    expect(await scene.run(id, fetched('a.test'))).toBe(HELLO)
  })

  test('to another mode is refused while the agent runs', async () => {
    const id = await scene.create({ network: { mode: 'open' } })
    const running = scene.say(id, 'touch begun; until [ -e go ]; do sleep 0.1; done')
    await expect
      .poll(async () => (await scene.server.call('GET', `/conversations/${id}/file-info/begun`)).status)
      .toBe(200)
    expect((await configure(id, { mode: 'none' })).body.error).toBe('conversation_running')
    await scene.server.call('PUT', `/conversations/${id}/files/go`, '')
    await running
    expect((await configure(id, { mode: 'none' })).status).toBe(200)
  })
})

test('the log reports each decision if enabled', async () => {
  const id = await scene.create({ network: { mode: 'allowlist', allow: [at('a.test')], log: true } })
  await scene.run(id, `for i in 1 2 3; do ${fetched('a.test')}; done; ${fetched('b.test')}`)
  await expect
    .poll(async () => await scene.events(id, 'types=NetworkAccess'))
    .toEqual(
      expect.arrayContaining([
        expect.objectContaining({ host: 'a.test', port: outside.port, allowed: true }),
        expect.objectContaining({ host: 'b.test', port: outside.port, allowed: false, count: 1 }),
      ]),
    )
  const metrics = await (
    await fetch(`${scene.server.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })
  ).text()
  expect(metrics).toMatch(/agent_server_network_connections_total\{outcome="denied"\} [1-9]/)
})

describe('the operator', () => {
  test('sets what holds without a policy, and the most that there can be', async () => {
    const { port } = outside
    const ceiling = `allowlist:a.test:${port},b.test:${port}`
    const env = { OPENHANDS_NETWORK: `allowlist:a.test:${port}`, OPENHANDS_NETWORK_CEILING: ceiling }
    await using own = await setNetworkScene({ 'a.test': port, 'b.test': port, 'c.test': port }, env)
    const id = await own.create()
    expect(await own.run(id, fetched('a.test'))).toBe(HELLO)
    expect(await own.run(id, fetched('b.test'))).toContain('not on the allow list')
    const create = (network: object) =>
      own.server.call('POST', '/conversations', {
        llm_config: { model: 'scripted', base_url: own.model.baseUrl },
        network,
      })
    expect((await create({ mode: 'open' })).body.error).toBe('network_not_permitted')
    expect((await create({ mode: 'allowlist', allow: [at('c.test')] })).body.error).toBe('network_not_permitted')
    expect((await create({ mode: 'allowlist', allow: ['not a host'] })).body.error).toBe('invalid_request')
    expect((await create({ mode: 'none', allow: [] })).body.error).toBe('invalid_request')
    expect((await create({ mode: 'allowlist', allow: [at('b.test')] })).status).toBe(201)
    const raised = await own.server.call('PUT', `/conversations/${id}/config`, { network: { mode: 'open' } })
    expect(raised.body.error).toBe('network_not_permitted')
    const { body: info } = await own.server.call('GET', '/info')
    expect(info.network).toMatchObject({ default: { mode: 'allowlist' }, ceiling: { mode: 'allowlist' } })
    expect((await own.server.call('GET', `/conversations/${id}/agent-info`)).body.network.mode).toBe('allowlist')
    expect((await own.events(id, 'types=SystemInit'))[0].network.allow).toEqual([at('a.test')])
  })

  test('can lower the ceiling: it holds for the conversations there are, and for their copies', async () => {
    const { port } = outside
    await using own = await setNetworkScene({ 'a.test': port, 'b.test': port })
    const id = await own.create({ network: { mode: 'allowlist', allow: [at('a.test'), at('b.test')] } })
    expect(await own.run(id, fetched('b.test'))).toBe(HELLO)
    await own.server.restart('SIGTERM', { OPENHANDS_NETWORK_CEILING: `allowlist:${at('a.test')}` })
    const { body: copy } = await own.server.call('POST', `/conversations/${id}/fork`, {})
    for (const each of [id, copy.id]) {
      expect(await own.run(each, fetched('a.test'))).toBe(HELLO)
      expect(await own.run(each, fetched('b.test'))).toContain('operator does not allow')
    }
    await own.server.restart('SIGTERM', { OPENHANDS_NETWORK_CEILING: 'none' })
    expect(await own.run(id, fetched('a.test'))).toContain('Could not resolve')
  })

  test('without a sandbox, no mode but open is taken, and a conversation of before gets no shell', async () => {
    await using own = await setNetworkScene({ 'a.test': outside.port })
    const id = await own.create({ network: { mode: 'none' } })
    await own.server.restart('SIGTERM', { OPENHANDS_ISOLATION: 'none' })
    const refused = await own.server.call('PUT', `/conversations/${id}/config`, { network: { mode: 'allowlist' } })
    expect(refused.body.error).toBe('network_mode_unavailable')
    const { body } = await own.server.call('POST', `/conversations/${id}/commands`, { command: 'echo out' })
    expect(JSON.stringify(body)).not.toContain('out\\n')
    expect(JSON.stringify(body)).toContain('Without a sandbox no shell is started in the network mode none')
    const { exited, output } = launch(['serve'], {
      env: {
        OPENHANDS_MASTER_KEY: KEY,
        OPENHANDS_ISOLATION: 'none',
        OPENHANDS_NETWORK: 'none',
        // Another server may run on this machine.
        OPENHANDS_DATA_DIR: join(own.server.home, 'other'),
        OPENHANDS_SERVER_PORT: '0',
      },
    })
    expect(await exited).toBe(2)
    expect(output()).toContain('there is no sandbox')
  })
})
