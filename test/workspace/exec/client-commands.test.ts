/** Commands of clients inside the server: small limits, shells that cannot start, and the way other parts run one. */
import { expect, test } from 'vitest'
import { RunCommand } from '../../../src/contract/values/command.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import type { ClientExec } from '../../../src/workspace/exec/client-exec.ts'
import type { Execution } from '../../../src/conversations/dependencies.ts'
import { hostLauncher } from '../../../src/sandbox/launch.ts'
import { eventsOf, only, realShells, setBench } from '../../conversations/fixtures.ts'
import { launcherOf } from '../../support/launcher.ts'
import { until } from '../../support/until.ts'
import { UNTIL_ALLOWED } from '../../support/background.ts'

async function open(
  commandLimits: Execution['commandLimits'] = {},
  launcher = hostLauncher,
): Promise<ClientExec & { readonly conversation: Conversation } & AsyncDisposable> {
  const bench = await setBench({ deps: { createShells: realShells(launcher), commandLimits } })
  const conversation = await bench.manager.open(await bench.create())
  return { ...conversation.exec, conversation, [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose]() }
}

const commandOf = (command: string, more: object = {}) => RunCommand.parse({ command, ...more })
const SIGNAL = new AbortController().signal

const wholeOf = async ({ commands }: ClientExec, id: string) => {
  const query = { stream: 'stdout', offset: 0, max_bytes: 65_536, wait: 0 } as const
  return await commands.output(id, query, SIGNAL)
}

test('a command that a client waits for is ended if it writes more than is kept', async () => {
  await using opened = await open({ streamBytes: 1000 })
  const outcome = await opened.commands.run(commandOf('yes; echo survived >&2'))
  expect(outcome.note).toMatch(/more output than a file may hold/)
  expect(outcome).toMatchObject({ status: 'killed', killed_by: 'output_limit' })
  expect(await wholeOf(opened, outcome.command_id)).toMatchObject({ text: 'y\n'.repeat(500), complete: true })
})

test.each(['constructor', '__proto__'])('a session may have the name %s', async (session_id) => {
  await using opened = await open()
  const { command_id, ...outcome } = await opened.commands.run(commandOf('echo done', { session_id }))
  expect(outcome).toMatchObject({ status: 'exited', stdout: 'done\n' })
  expect(await opened.commands.get(command_id)).toMatchObject({ session_id })
})

test('in the background it continues, and reports that the rest was dropped', async () => {
  await using opened = await open({ streamBytes: 1000 })
  const { command_id } = await opened.commands.start(commandOf('seq 2000; echo end >&2', { background: true }))
  await expect.poll(async () => (await opened.commands.get(command_id)).status).toBe('exited')
  expect(await opened.commands.get(command_id)).toMatchObject({
    exit_code: 0,
    truncated: true,
    note: 'Only the first 1000 bytes of each output stream are kept.',
  })
  expect((await wholeOf(opened, command_id)).next_offset).toBe(1000)
})

test('background processes of a command write no more than the command itself may', async () => {
  await using opened = await open({ streamBytes: 1000 })
  const { command_id } = await opened.commands.run(commandOf(`{ ${UNTIL_ALLOWED}; seq 2000; } & printf "begun\\n"`))
  await opened.commands.run(commandOf('touch allowed'))
  await expect.poll(async () => (await wholeOf(opened, command_id)).complete).toBe(true)
  const { text, next_offset } = await wholeOf(opened, command_id)
  expect(next_offset).toBe(1000)
  expect(text).toMatch(/^begun\n1\n2\n/)
})

test('the oldest commands are removed, with their output', async () => {
  await using opened = await open({ records: 5 })
  const first = await opened.commands.run(commandOf('echo 0'))
  for (const n of [1, 2, 3, 4, 5]) await opened.commands.run(commandOf(`echo ${n}`))
  const { items } = await opened.commands.list({ limit: 100 })
  expect(items.length).toBeLessThanOrEqual(5)
  expect(items[0]).toMatchObject({ command: 'echo 5' })
  await expect(opened.commands.get(first.command_id)).rejects.toMatchObject({ code: 'command_not_found' })
})

test('commands of a session run in the order of their requests, however slow the disk is for each', async () => {
  await using opened = await open()
  const numbers = Array.from({ length: 12 }, (_, n) => n)
  const headers = (n: number) => (n % 3 === 0 ? { idempotency: { key: `key ${n}`, bodyHash: 'hash' } } : {})
  const ran = await Promise.all(
    numbers.map((n) => opened.commands.run(commandOf(`echo ${n} | tee -a order`), headers(n))),
  )
  const { stdout } = await opened.commands.run(commandOf('cat order'))
  const { items } = await opened.commands.list({ limit: 100 })
  const ids = items.slice(1).map((item) => item.id)
  // By their ids too: a list tells the order.
  const byId = ids.toReversed().map((id) => ran.find(({ command_id }) => command_id === id)!.stdout)
  expect(stdout).toBe(byId.join(''))
})

test('a shell that cannot be started fails the command, in the log too, and no other', async () => {
  let isBroken = true
  const launcher = launcherOf((argv) => (isBroken ? ['/nowhere/bash'] : argv))
  await using opened = await open({}, launcher)
  for (const background of [false, true]) {
    const command = commandOf('true', { background })
    const { command_id } = background ? await opened.commands.start(command) : await opened.commands.run(command)
    await expect.poll(async () => (await opened.commands.get(command_id)).status).toBe('failed')
    expect((await opened.commands.get(command_id)).note).toMatch(/did not start/)
  }
  isBroken = false
  expect(await opened.commands.run(commandOf('echo now'))).toMatchObject({ stdout: 'now\n' })
  const results = only(await eventsOf(opened.conversation), 'CommandResult')
  expect(results.map(({ status }) => status)).toEqual(['failed', 'failed', 'exited'])
})

test('run by another part of the server has an id before it begins, and is ended by a signal', async () => {
  await using opened = await open()
  const abort = new AbortController()
  const ids: string[] = []
  const outcome = await opened.commands.run(commandOf('echo begun; sleep 60'), {
    signal: abort.signal,
    onId(id) {
      ids.push(id)
      void until('its output', async () => (await wholeOf(opened, id)).text === 'begun\n').then(() => abort.abort())
    },
  })
  expect(outcome).toMatchObject({ command_id: ids[0], status: 'killed', stdout: 'begun\n' })
  const aborted = await opened.commands.run(commandOf('echo not'), { signal: abort.signal })
  expect(aborted).toMatchObject({ status: 'killed', exit_code: null, stdout: '' })
})

test('a new workdir ends what runs, and says so; the next command starts there', async () => {
  await using opened = await open()
  const running = opened.commands.run(commandOf('sleep 60'))
  const { command_id } = await opened.commands.start(commandOf('sleep 61', { background: true }))
  await expect.poll(async () => (await opened.processes.list()).length).toBe(3)
  await opened.conversation.configure({ workdir: 'elsewhere' })
  expect(await running).toMatchObject({
    status: 'killed',
    killed_by: 'request',
    note: expect.stringContaining('closed'),
  })
  await expect.poll(async () => (await opened.commands.get(command_id)).status).toBe('killed')
  expect(await opened.processes.list()).toEqual([])
  expect(await opened.commands.run(commandOf('echo on'))).toMatchObject({ stdout: 'on\n' })
})

test('nothing begins in a conversation that is being closed', async () => {
  await using opened = await open()
  await opened.conversation.dispose('closing')
  await expect(opened.commands.run(commandOf('true'))).rejects.toMatchObject({ code: 'unavailable' })
})
