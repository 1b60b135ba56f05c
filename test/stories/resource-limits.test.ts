/** Agents that take all they can get, on a real server: they meet their limits, and nobody else notices. */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { markedProcesses } from '../support/marked.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { IS_SOAK } from '../support/patience.ts'

/** Small, so that what fails to be limited does no harm. */
const LIMITS = { OPENHANDS_LIMIT_MEMORY: '200M', OPENHANDS_LIMIT_PROCESSES: '60', OPENHANDS_LIMIT_DISK: '64M' }

const isRoot = process.getuid!() === 0
/** Covers the control groups, so that the server finds none. */
const COVER = 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"'
const WITHOUT_CGROUPS = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', COVER, 'without-cgroups']

/** As a user without rights, who has neither control groups nor the right to lower a nice value. The executable may lie where only root may look. */
const AS_NOBODY =
  'chown 65534:65534 .; exec 9<"$1"; shift; exec setpriv --reuid 65534 --regid 65534 --clear-groups /proc/self/fd/9 "$@"'
const WITHOUT_RIGHTS = ['sh', '-c', AS_NOBODY, 'without-rights']

/**
 * Those that can be had depend on who runs the tests; the host decides on the control groups where they are not covered.
 * Those in between are for the soak: there is nothing in them that is in neither of the others.
 */
const PLACES = [
  { name: 'in a sandbox', isolation: 'bubblewrap', wrapper: [] },
  ...(IS_SOAK || !isRoot ? [{ name: 'without isolation', isolation: 'none', wrapper: [] }] : []),
  ...(IS_SOAK && isRoot
    ? [
        { name: 'in a sandbox, without control groups', isolation: 'bubblewrap', wrapper: WITHOUT_CGROUPS },
        { name: 'in a sandbox, as a user without rights', isolation: 'bubblewrap', wrapper: WITHOUT_RIGHTS },
      ]
    : []),
  ...(isRoot ? [{ name: 'without isolation and control groups', isolation: 'none', wrapper: WITHOUT_CGROUPS }] : []),
]

async function setScene(isolation = 'bubblewrap', wrapper: readonly string[] = [], env: Record<string, string> = {}) {
  const script: Script = ({ body }) => {
    const { role, content } = body.messages.at(-1)!
    if (role !== 'user') return { text: 'Done.' }
    const text = content as string
    return text.startsWith('{"') ? { calls: [{ name: 'FileEditor', arguments: text }] } : bash(text)
  }
  const stage = await setStage(script, { wrapper, env: { ...LIMITS, OPENHANDS_ISOLATION: isolation, ...env } })
  const attempt = async (id: string, command: string) =>
    (await stage.say(id, command)).find((event) => event.type === 'ToolResult')
  return Object.assign(stage, { attempt })
}

/** The groups that are there for conversations of this server, wherever it makes them. */
async function groupsOf({ server }: Stage): Promise<string[]> {
  const record = join(server.dataDir, 'cgroups')
  if (!existsSync(record)) return []
  const places = (await readFile(record, 'utf8')).split('\n').filter(Boolean)
  const { conversations } = { conversations: (await server.call('GET', '/conversations')).body.items }
  const ids: string[] = conversations.map(({ id }: { id: string }) => id)
  const names = await Promise.all(places.map((place) => readdir(place.slice(2)).catch(() => [])))
  return names.flat().filter((name) => ids.some((id) => name.includes(id)))
}

const processesOf = async (id: string) => markedProcesses(id)

const noneIsLeftOf = async (id: string) => expect.poll(async () => (await processesOf(id)).length).toBe(0)

/** Doubles itself, but ends at a few hundred: for where it must not depend on a limit that something else ends it. */
const BOUNDED_BOMB =
  'bomb() { if [ $1 = 0 ]; then sleep 60; else bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; }; bomb 8'

async function expectEnded(scene: Awaited<ReturnType<typeof setScene>>, filler: string): Promise<void> {
  const id = await scene.create()
  const result = await scene.attempt(id, filler)
  expect(result).toMatchObject({ is_error: true, error_type: 'resource_limit' })
  expect(result.error_message).toContain('disk limit')
  const freed = await scene.attempt(id, 'exec 5>&-; rm -rf * ~/part*; echo deleted')
  expect(freed).toMatchObject({ is_error: false, output: { stdout: 'deleted\n' } })
  expect((await scene.attempt(id, 'echo fine')).output).not.toHaveProperty('note')
}

describe('the disk limit', () => {
  test.each([
    ['one file', 'yes > one'],
    ['empty files', 'for i in $(seq 60); do mkdir dir-$i; touch dir-$i/{1..1000}; done; sleep 30'],
    ['a file without a name', 'exec 5>nameless; rm nameless; for i in $(seq 1000); do head -c 1M /dev/zero >&5; done'],
    ['temporary files', 'for i in $(seq 1000); do head -c 1M /dev/zero > ~/part-$i; done; rm ~/part*'],
  ])('is met by %s', async (_, filler) => {
    await using scene = await setScene('bubblewrap', [], { OPENHANDS_LIMIT_DISK: '32M' })
    await expectEnded(scene, filler)
  })

  test('is reported to clients and to the editor that write beyond it; deleting stays possible', async () => {
    await using scene = await setScene()
    const id = await scene.create()
    const path = `/conversations/${id}/files/large`
    const put = (size: number) => scene.server.call('PUT', path, 'x'.repeat(size), { 'content-type': 'text/plain' })
    expect((await put(1_000_000)).status).toBe(201)
    const refused = await put(70_000_000)
    expect(refused).toMatchObject({ status: 507, body: { error: 'disk_quota_exceeded' } })
    expect(refused.body.details.limit_bytes).toBe(64 * 1024 ** 2)
    await scene.attempt(id, 'head -c 60M /dev/zero > most; head -c 10M /dev/zero > rest')
    const create = { command: 'create', path: `${(await scene.attempt(id, 'true')).output.cwd}/new`, file_text: 'x' }
    const edited = await scene.attempt(id, JSON.stringify(create))
    expect(edited).toMatchObject({ is_error: true })
    expect(JSON.stringify(edited)).toContain('The disk limit of this conversation is 64 MiB')
    expect((await put(1)).status).toBe(507)
    expect((await scene.server.call('POST', `/conversations/${id}/dirs/more`)).status).toBe(507)
    for (const name of ['most', 'rest'])
      expect((await scene.server.call('DELETE', `/conversations/${id}/files/${name}`)).status).toBe(204)
    expect((await put(1)).status).toBe(200)
    expect(await scene.attempt(id, JSON.stringify(create))).toMatchObject({ is_error: false })
  })
})

describe('what a server reports about its limits', () => {
  test('is the same in /info and at the beginning of a conversation, which may ask for less and never for more', async () => {
    await using scene = await setScene()
    const { resource_limits: own } = (await scene.server.call('GET', '/info')).body
    expect(own).toMatchObject({ memory_bytes: 200 * 1024 ** 2, processes: 60, cpus: null, disk_bytes: 64 * 1024 ** 2 })
    const usual = await scene.create()
    expect((await scene.events(usual))[0]).toMatchObject({ type: 'SystemInit', resource_limits: own })
    const limits = { processes: 30, cpus: 0.5 }
    const lower = await scene.create({ limits })
    const expected = { ...own, ...limits }
    expect((await scene.events(lower))[0].resource_limits).toEqual(expected)
    expect((await scene.server.call('GET', `/conversations/${lower}/agent-info`)).body.resource_limits).toEqual(
      expected,
    )
    expect((await scene.server.call('GET', `/conversations/${lower}`)).body.limits).toEqual(limits)
    await expect(scene.create({ limits: { memory_bytes: 300 * 1024 ** 2 } })).rejects.toThrow(/memory_bytes \(at most/)
    const result = await scene.attempt(lower, 'for i in $(seq 40); do sleep 5 & done; wait; exit 1')
    expect(result.error_message).toContain('limit of 30 processes')
  })

  test.runIf(isRoot)('names what of it the kernel does not enforce', async () => {
    await using scene = await setScene('bubblewrap', WITHOUT_CGROUPS)
    const { enforced_by } = (await scene.server.call('GET', '/info')).body.resource_limits
    expect(enforced_by).toEqual({
      memory: 'watchdog',
      processes: 'watchdog',
      cpu: 'priority',
      io: 'none',
      disk: 'accounting',
    })
  })
})

describe('while one conversation uses all it can get', () => {
  test.for([
    ['processes', ':(){ :|:& };: ; sleep 1000'],
    ['memory', 'for i in $(seq 30); do { head -c 40M /dev/zero; sleep 1000; } | tail | wc -c & done; wait'],
    ['the disk', 'for i in $(seq 1000); do head -c 1M /dev/zero > part-$i; done; sleep 1000'],
    ['the processors', 'for i in $(seq 50); do sh -c "while :; do :; done" & done; wait'],
  ] as const)('%s, the server answers and another one works', async ([, bomb], { skip }) => {
    await using scene = await setScene()
    const { enforced_by } = (await scene.server.call('GET', '/info')).body.resource_limits
    skip(!enforced_by.processes.startsWith('cgroup'), 'a bomb is only set off where control groups end it')
    const [hostile, neighbour] = [await scene.create(), await scene.create()]
    const run = (id: string, command: string) =>
      scene.server.call('POST', `/conversations/${id}/commands`, { command, timeout: 3600 })
    await run(neighbour, 'true')
    const bombing = run(hostile, bomb)
    await expect.poll(async () => (await processesOf(hostile)).length).toBeGreaterThan(2)
    for (let times = 0; times < 9; times++) {
      expect((await run(neighbour, 'seq 1000 | sort | tail -1')).body).toMatchObject({ stdout: '999\n' })
      expect((await scene.server.call('GET', '/alive')).status).toBe(200)
    }
    await scene.server.call('DELETE', `/conversations/${hostile}`)
    await bombing
    await noneIsLeftOf(hostile)
  })
})

describe.each(PLACES)('$name', ({ isolation, wrapper }) => {
  test('a process that uses too much memory ends, its result says why, and the conversation continues', async () => {
    await using scene = await setScene(isolation, wrapper)
    const id = await scene.create()
    const result = await scene.attempt(id, 'head -c 400M /dev/zero | tail | wc -c; sleep 3')
    expect(await scene.attempt(id, 'echo alive')).toMatchObject({ is_error: false, output: { stdout: 'alive\n' } })
    const { memory } = (await scene.server.call('GET', '/info')).body.resource_limits.enforced_by
    // Without control groups what a single process asks for beyond the limit it does not get, and says so itself.
    if (memory === 'watchdog') return expect(JSON.stringify(result.output)).toMatch(/memory/)
    expect(result.output.note).toContain('more memory than its limit of 200 MiB')
  })

  test('processes that take too much memory together are ended, and their result says why', async () => {
    await using scene = await setScene(isolation, wrapper)
    const id = await scene.create()
    const each = '{ head -c 60M /dev/zero; sleep 5; } | tail | wc -c'
    const result = await scene.attempt(id, `for i in 1 2 3 4 5 6; do ${each} & done; wait; exit 1`)
    expect(result).toMatchObject({ is_error: true, error_type: 'resource_limit' })
    expect(result.error_message).toContain('200 MiB')
    expect(await scene.attempt(id, 'echo alive')).toMatchObject({ output: { stdout: 'alive\n' } })
  })

  test('a fork bomb is ended, its result says why, and the conversation continues', async () => {
    await using scene = await setScene(isolation, wrapper)
    const id = await scene.create()
    const result = await scene.attempt(id, BOUNDED_BOMB)
    expect(result).toMatchObject({ is_error: true, error_type: 'resource_limit' })
    expect(result.error_message).toContain('limit of 60 processes')
    // On a busy machine the last of its processes end after the result.
    await expect
      .poll(() => scene.attempt(id, 'echo alive'))
      .toMatchObject({ is_error: false, output: { stdout: 'alive\n' } })
    await scene.server.call('DELETE', `/conversations/${id}`)
    await noneIsLeftOf(id)
  })

  test('a command that fills the disk is ended and says so; one that deletes is not, and then all is well', async () => {
    await using scene = await setScene(isolation, wrapper)
    await expectEnded(scene, 'for i in $(seq 1000); do head -c 1M /dev/zero > part-$i; done')
  })

  test('nothing is left of its processes and control groups after its end, and after that of the server', async () => {
    await using scene = await setScene(isolation, wrapper)
    const [ended, killed] = [await scene.create(), await scene.create()]
    for (const id of [ended, killed]) await scene.attempt(id, 'setsid sleep 1000 & sleep 1000 & echo')
    const { enforced_by } = (await scene.server.call('GET', '/info')).body.resource_limits
    if (enforced_by.memory.startsWith('cgroup')) expect(await groupsOf(scene)).not.toEqual([])
    await scene.server.call('DELETE', `/conversations/${ended}`)
    await noneIsLeftOf(ended)
    expect((await groupsOf(scene)).filter((name) => name.includes(ended))).toEqual([])
    await scene.server.restart('SIGKILL')
    await noneIsLeftOf(killed)
    expect(await groupsOf(scene)).toEqual([])
  })
})
