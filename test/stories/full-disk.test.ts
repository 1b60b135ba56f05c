import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { subscribe } from '../support/stream.ts'

const LIMIT_KIB = 64

/** A limit on the size of files fails writes as a full disk does, and needs no file system of its own. */
async function makeRoom(pid: number): Promise<void> {
  await promisify(execFile)('prlimit', ['--pid', String(pid), '--fsize=unlimited'])
}

test('a run that meets a full disk stops, loses nothing that was acknowledged, and continues once there is room', async () => {
  const turns = [
    ...Array.from({ length: 20 }, (_, i) => bash(`echo ${i} >> count; head -c 8000 /dev/zero | tr '\\0' x`)),
    { text: 'Done.' },
  ]
  const script = { replies: [{ when: 'go on', turns: [{ text: 'There is room again.' }] }, { turns }] }
  await using stage = await setStage(script, {
    wrapper: ['bash', '-c', `ulimit -S -f ${LIMIT_KIB}; exec "$@"`, 'bash'],
  })
  const { server } = stage
  const [full, other] = [await stage.create(), await stage.create()]
  const stream = await subscribe(server.url, `/conversations/${full}/events/stream?after_seq=0`)
  await server.call('POST', `/conversations/${full}/messages`, {
    message: { role: 'user', content: 'fill it' },
    run: true,
  })

  const status = async () => (await server.call('GET', `/conversations/${full}`)).body.status
  await expect.poll(status).toBe('error')
  const refused = await server.call('POST', `/conversations/${full}/messages`, {
    message: { role: 'user', content: 'x'.repeat(20_000) },
  })
  expect(refused).toMatchObject({
    status: 507,
    body: { error: 'storage_full', message: expect.stringContaining('room') },
  })
  expect((await server.call('GET', `/conversations/${other}`)).status, 'the others work').toBe(200)

  await makeRoom(server.pid)
  const next = { message: { role: 'user', content: 'There is room.' } }
  expect((await server.call('POST', `/conversations/${full}/messages`, next)).status, 'after the end of the run').toBe(
    202,
  )
  const after = await stage.say(full, 'go on')
  expect(after.find((event) => event.type === 'Result')).toMatchObject({
    stop_reason: 'completed',
    final_text: 'There is room again.',
  })

  const events = await stage.events(full)
  expect(events.slice(0, stream.frames.length)).toEqual(stream.frames.map((frame) => frame.data))
  expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1))
  const calls = events.filter((event) => event.type === 'ToolUse').map((event) => event.tool_use_id)
  const results = events.filter((event) => event.type === 'ToolResult').map((event) => event.tool_use_id)
  expect(results, 'every call has one result').toEqual(calls)
  stream.close()
})

test('a server starts on a full disk: what is there can be read and deleted, and the rest follows once there is room', async () => {
  await using stage = await setStage(
    { replies: [{ turns: [{ text: 'Hello.' }] }] },
    {
      env: { OPENHANDS_ISOLATION: 'none' },
      wrapper: ['bash', '-c', '[ -e full ] && ulimit -S -f 0; exec "$@"', 'bash'],
    },
  )
  const { server } = stage
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  // As clients send it with each create.
  const createOther = () =>
    server.call('POST', '/conversations', { llm_config }, { 'idempotency-key': 'the-other-conversation' })
  const [kept, other] = [await stage.create(), (await createOther()).body.id]
  await stage.say(kept, 'hi')
  await writeFile(join(server.home, 'full'), '')
  await server.restart()
  expect((await server.call('GET', `/conversations/${kept}/events`)).status).toBe(200)
  const refused = await server.call('POST', `/conversations/${kept}/messages`, {
    message: { role: 'user', content: 'x' },
  })
  expect(refused).toMatchObject({ status: 507, body: { error: 'storage_full' } })
  expect((await server.call('DELETE', `/conversations/${other}`)).status).toBe(204)
  await makeRoom(server.pid)
  expect((await stage.say(kept, 'hi')).at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'idle' })
  for (const moment of ['before', 'after'] as const) {
    expect(await createOther(), `${moment} a restart`).toMatchObject({
      status: 410,
      body: { error: 'conversation_deleted', message: expect.stringContaining(other) },
    })
    await rm(join(server.home, 'full'), { force: true })
    await server.restart()
  }
})

test('a snapshot that meets a full disk ends no run, leaves nothing broken, and the next run has its own', async () => {
  // Two files that fit, and whose contents together do not fit in a pack.
  const fill = 'head -c 60000 /dev/urandom >a; head -c 60000 /dev/urandom >b'
  const script = ({ messages }: { messages: readonly { role: string; content?: unknown }[] }) =>
    messages.at(-1)?.role === 'tool'
      ? { text: 'Done.' }
      : bash(JSON.stringify(messages.at(-1)?.content).includes('more') ? 'echo more >a' : fill)
  await using stage = await setStage(script, {
    wrapper: ['bash', '-c', `ulimit -S -f ${LIMIT_KIB}; exec "$@"`, 'bash'],
  })
  const { server } = stage
  const id = await stage.create({ file_checkpointing: true })
  const snapshots = async () =>
    (await server.call('GET', `/conversations/${id}/events?types=WorkspaceSnapshot`)).body.items
  const first = await stage.say(id, 'fill it')
  expect(first.find(({ type }) => type === 'Result')).toMatchObject({ stop_reason: 'completed' })
  const before = await snapshots()
  await expect.poll(server.output).toContain('no snapshot of the workdir could be taken')
  const { last_seq } = (await server.call('GET', `/conversations/${id}`)).body

  await makeRoom(server.pid)
  const second = await stage.say(id, 'more')
  // The contents are no text, and have no lines.
  const changes = { files: 1, added: 0 }
  expect(second.find(({ type }) => type === 'Result')).toMatchObject({ stop_reason: 'completed', changes })
  expect((await snapshots()).length).toBe(before.length + 2)
  const { last_seq: now } = (await server.call('GET', `/conversations/${id}`)).body
  const request = { to_seq: last_seq, last_seq: now, files: true }
  const { status, body } = await server.call('POST', `/conversations/${id}/rewind`, request)
  expect([status, body.files?.changed]).toEqual([200, ['a']])
  const diff = await server.call('GET', `/conversations/${id}/diff?from=${last_seq}&to=now`)
  expect(diff.body.items).toEqual([])
})

test('a rewind that meets a full disk leaves whole files, and the same request does the rest once there is room', async () => {
  const script = { replies: [{ turns: [bash('rm -r z.bin sub; echo new >a'), { text: 'Done.' }] }] }
  await using stage = await setStage(script, {})
  const { server } = stage
  const id = await stage.create({ file_checkpointing: true })
  const path = `/conversations/${id}`
  const { workdir } = (await server.call('GET', path)).body
  const large = Buffer.alloc(3 * LIMIT_KIB * 1024, 'large')
  await mkdir(join(workdir, 'sub'))
  for (const [name, content] of [
    ['a', 'old'],
    ['sub/inner', 'old'],
    ['z.bin', large],
  ] as const)
    await writeFile(join(workdir, name), content)
  await stage.say(id, 'Go.')
  const { last_seq } = (await server.call('GET', path)).body
  const request = { to_seq: 1, last_seq, files: true, conversation: false }
  await promisify(execFile)('prlimit', ['--pid', String(server.pid), `--fsize=${LIMIT_KIB * 1024}:`])
  expect(await server.call('POST', `${path}/rewind`, request)).toMatchObject({
    status: 507,
    body: { error: 'storage_full' },
  })
  expect((await readdir(workdir)).toSorted()).toEqual(['a', 'sub'])
  expect(await readFile(join(workdir, 'sub/inner'), 'utf8')).toBe('old')

  await makeRoom(server.pid)
  expect(await server.call('POST', `${path}/rewind`, request)).toMatchObject({
    status: 200,
    body: { files: { failed: [] } },
  })
  expect(await readFile(join(workdir, 'a'), 'utf8')).toBe('old')
  expect((await readFile(join(workdir, 'z.bin'))).equals(large)).toBe(true)
})
