/** Instances of the server that share a real database, and the processes of their conversations when renewals fail. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ProcessEntry } from '../../../src/shell/processes/process-table.ts'
import { commandLineOf, findDescendants, findProcess, isAlive } from '../../../src/shell/processes/process-table.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { tempDirectory } from '../../events/fixtures.ts'
import { bash, setStage } from '../../support/agent.ts'
import { startCutProxy } from '../../support/cut-proxy.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase } from '../../support/postgres.ts'
import type { TestServer } from '../../support/server.ts'
import { startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'

/** Loads the program and ignores the one that follows it. */
const SHARED = [process.execPath, join(import.meta.dirname, '../../support/children/shared-instance.ts')]

const ISOLATIONS = ['none', 'bubblewrap'] as const
type Isolation = (typeof ISOLATIONS)[number]

/** Longer than the lease is valid after a renewal, and than the command is held while it is. */
const TIMEOUT_S = 25

const TICKS = 'while [ ! -e go ]; do echo tick >> ticks; sleep 0.05; done; echo over'

type Working = AsyncDisposable & {
  readonly server: TestServer
  readonly workdir: string
  readonly ticks: () => number
  /** All that the server has started and that still lives, but the guard. */
  readonly processes: () => ProcessEntry[]
  readonly result: () => Promise<Record<string, unknown> | undefined>
}

/** Starts an instance with a command that writes ticks to a file, also from a process that left the tree of its shell. */
async function startWork(isolation: Isolation, url: string): Promise<Working> {
  await using started = new AsyncDisposableStack()
  const env = { OPENHANDS_DATABASE_URL: url, OPENHANDS_ISOLATION: isolation, LLM_TIMEOUT: '600' }
  const server = started.use(await startServer({ env, wrapper: SHARED }))
  const word = `left-${randomUUID()}`
  const left = `(setsid sh -c "while :; do echo ${word} >> ticks; sleep 0.05; done" >/dev/null 2>&1 &)`
  const command = bash(`${left}; ${TICKS}`, { timeout: TIMEOUT_S })
  const stage = await setStage({ replies: [{ turns: [command, { text: 'Done.' }] }] }, server)
  started.defer(() => stage.model.close())
  const id = await stage.create()
  const workdir = String((await server.call('GET', `/conversations/${id}`)).body.workdir)
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'Go.' }, run: true })
  const file = join(workdir, 'ticks')
  const ticks = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  await until('ticks of both', () =>
    Promise.resolve(ticks() > 0 && ['tick', 'left'].every((each) => readFileSync(file, 'utf8').includes(each))),
  )
  const result = async () => (await stage.events(id)).find(({ type }) => type === 'ToolResult')
  const processes = () => [...findDescendants(server.pid, isGuard), ...processesWith(word)].filter(isAlive)
  const own = started.move()
  return { server, workdir, ticks, processes, result, [Symbol.asyncDispose]: () => own.disposeAsync() }
}

const isGuard = (entry: ProcessEntry) => commandLineOf(entry).includes('agent-server-guard')

const processesWith = (word: string) =>
  readdirSync('/proc')
    .map((pid) => findProcess(Number(pid)))
    .filter((entry) => entry !== undefined)
    .filter((entry) => commandLineOf(entry).includes(word))

const untilFrozen = ({ processes }: Working) =>
  until('frozen processes', () => Promise.resolve(processes().every(isFrozen)))

/** The kernel keeps a shell waiting for a child that was stopped between vfork and exec, and stops the shell after that. */
const isFrozen = ({ pid, state }: ProcessEntry): boolean =>
  state === 'T' || (state === 'D' && findDescendants(pid).some((child) => child.state === 'T'))

const untilEnded = (left: readonly ProcessEntry[]) =>
  until('the end of the processes', () => Promise.resolve(!left.some(isAlive)))

const untilMore = ({ ticks }: Working) => {
  const before = ticks()
  return until('more ticks', () => Promise.resolve(ticks() > before))
}

/** What could write would write within this time; it is not waited for in another way because nothing happens. */
const untilLater = async () => {
  const later = AbortSignal.timeout(1000)
  await until('a later time', () => Promise.resolve(later.aborted))
}

/** Waits until another instance may take over, and returns how much was written by then. */
async function untilDeclaredDead({ ticks }: Working, database: TestDatabase): Promise<number> {
  await using place = await tempDirectory()
  await using _other = await openPostgresStorage({
    url: database.url,
    directory: place.path,
    operatorKeys: ['test-master-key-0123456789'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault: () => {},
  })
  return await until('the end of the incarnation', async () => {
    const [row] = await database.query('select 1 from incarnations where ended_at is not null')
    return row && ticks()
  })
}

for (const isolation of ISOLATIONS) {
  test(`commands of an instance without its database stand still with their time limit, and continue when it is back (${isolation})`, async () => {
    await using database = await createDatabase()
    const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
    const url = new URL(database.url)
    url.port = new URL(proxy.url).port
    {
      await using work = await startWork(isolation, url.href)
      const limit = AbortSignal.timeout(TIMEOUT_S * 1000)
      proxy.down()
      await untilFrozen(work)
      const frozen = work.ticks()
      await until('503', async () => (await work.server.call('GET', '/ready')).status === 503)
      await until('the time limit', () => Promise.resolve(limit.aborted))
      expect(work.ticks()).toBe(frozen)
      proxy.up()
      await untilMore(work)
      await writeFile(join(work.workdir, 'go'), '')
      const result = await until('the result', work.result)
      expect(result).toMatchObject({ is_error: false, output: { exit_code: 0 } })
    }
    await proxy.close()
  })

  test(`commands of a stopped server stand still, and continue with it if nobody has taken over (${isolation})`, async () => {
    await using database = await createDatabase()
    await using work = await startWork(isolation, database.url)
    process.kill(work.server.pid, 'SIGSTOP')
    await untilFrozen(work)
    const frozen = work.ticks()
    await untilLater()
    expect(work.ticks()).toBe(frozen)
    process.kill(work.server.pid, 'SIGCONT')
    await untilMore(work)
    await writeFile(join(work.workdir, 'go'), '')
    expect(await until('the result', work.result)).toMatchObject({ is_error: false })
  })

  test(`commands of a stopped server write nothing once another one may take over, also when it continues (${isolation})`, async () => {
    await using database = await createDatabase()
    await using work = await startWork(isolation, database.url)
    const left = work.processes()
    process.kill(work.server.pid, 'SIGSTOP')
    const dead = await untilDeclaredDead(work, database)
    await untilLater()
    expect(work.ticks()).toBe(dead)
    process.kill(work.server.pid, 'SIGCONT')
    expect(await work.server.exited()).toBe(1)
    await untilEnded(left)
    expect(work.ticks()).toBe(dead)
  })

  test(`commands of a killed server end with it (${isolation})`, async () => {
    await using database = await createDatabase()
    await using work = await startWork(isolation, database.url)
    const left = work.processes()
    await work.server.stop('SIGKILL')
    await untilEnded(left)
    const last = work.ticks()
    await untilLater()
    expect(work.ticks()).toBe(last)
  })
}
