import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { BackgroundShells } from '../../src/tools/background/background-shells.ts'
import { createBashTool } from '../../src/tools/bash.ts'
import type { ToolContext } from '../../src/tools/tool.ts'
import type { ToolOutcome } from '../../src/state/tool-call.ts'
import type { ShellsOptions } from '../../src/shell/shells.ts'
import { openShells } from '../shell/shell-fixture.ts'
import { launcherOf } from '../support/launcher.ts'
import { longEnough } from '../support/long-enough.ts'

async function openTool(overrides: Partial<ShellsOptions> = {}) {
  const { shells, workdir, conversationId, outputDir } = await openShells(overrides)
  const stateDirectory = dirname(outputDir)
  const background = new BackgroundShells({ shells, stateDirectory })
  const tool = createBashTool({ shells, background })
  const context: ToolContext = {
    conversationId,
    toolUseId: randomUUID(),
    workdir,
    signal: new AbortController().signal,
    openRequest: async () => undefined,
    onOutput: () => {},
  }
  const call = (input: z.input<typeof tool.input>, more: Partial<ToolContext> = {}): Promise<ToolOutcome> =>
    tool.run(tool.input.parse(input), { ...context, ...more })
  const read = async (command: string) => tool.render!((await call({ command })).output)
  return { tool, call, read, workdir }
}

describe('the Bash tool', () => {
  test('answers by its output schema', async () => {
    const { tool, call, workdir } = await openTool()
    const outcome = await call({ command: 'echo out; echo err >&2; exit 3' })
    expect(tool.output!.parse(outcome.output)).toMatchObject({
      exit_code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      cwd: workdir,
      timed_out: false,
      note: expect.stringContaining('The shell ended'),
    })
  })

  test('keeps its state from call to call, apart for each session', async () => {
    const { call, read } = await openTool()
    await call({ command: 'x=1' })
    expect(await read('echo $x')).toBe('1')
    expect((await call({ command: 'echo "[$x]"', session_id: 'other' })).output).toMatchObject({ stdout: '[]\n' })
  })

  test('takes a non-zero exit as a result, not as an error', async () => {
    const { call } = await openTool()
    const outcome = await call({ command: 'false' })
    expect(outcome.error).toBeUndefined()
    expect(outcome.output).toMatchObject({ exit_code: 1 })
  })

  test('tells a timeout as an error, with the output so far', async () => {
    const { call } = await openTool()
    await longEnough(0.25, async (timeout) => {
      const { error, output } = await call({ command: 'echo begun; sleep 600', timeout })
      expect(error).toEqual({ type: 'timeout', message: `The command was ended after ${timeout} s.` })
      const isBegun = (output as { stdout: string }).stdout !== ''
      if (isBegun) expect(output).toMatchObject({ stdout: 'begun\n', timed_out: true })
      return isBegun
    })
  })

  test('ends the command when its signal is aborted, and says it was interrupted', async () => {
    const { call } = await openTool()
    const abort = new AbortController()
    const outcome = await call(
      { command: 'echo begun; sleep 20' },
      { signal: abort.signal, onOutput: () => abort.abort() },
    )
    expect(outcome.error?.type).toBe('interrupted')
  })

  test('shows output while it runs', async () => {
    const { call } = await openTool()
    const shown: unknown[] = []
    await call({ command: 'echo live' }, { onOutput: (...part) => shown.push(part) })
    expect(shown).toEqual([['stdout', 'live\n', 0]])
  })

  test('restarts the session before the command', async () => {
    const { call } = await openTool()
    await call({ command: 'x=1; mkdir sub; cd sub' })
    expect((await call({ command: 'echo "[$x]"; ls', restart: true })).output).toMatchObject({ stdout: '[]\nsub\n' })
  })

  test('names the file with the whole of a long output', async () => {
    const { call } = await openTool({ limits: { outputBytes: 100 } })
    const outcome = await call({ command: 'seq 1000' })
    expect(outcome).toMatchObject({ truncated: true, fullOutputPath: expect.stringContaining('stdout-') })
  })

  test('fails without a throw when there is no such session or no shell', async () => {
    const { call } = await openTool()
    expect((await call({ command: 'true', session_id: '../x' })).error?.type).toBe('invalid_input')
    const launcher = launcherOf(() => ['sh', '-c', 'echo no sandbox >&2; exit 1'])
    const broken = await openTool({ launcher })
    expect((await broken.call({ command: 'true' })).error).toMatchObject({
      type: 'failed',
      message: expect.stringMatching(/no sandbox/),
    })
  })

  test.each([{}, { command: 'x', timeout: 0 }, { command: 'x', timeout: 24 * 3600 + 1 }, { command: 1 }])(
    'refuses the input %j',
    async (input) => {
      const { tool } = await openTool()
      expect(tool.input.safeParse(input).success).toBe(false)
    },
  )
})

describe('a model reads', () => {
  test.each([
    ['standard output as it is', 'printf "  two\n\nlines\n"', '  two\n\nlines'],
    ['what else there is, labelled', 'echo out; echo err >&2; (exit 2)', 'out\n[stderr]\nerr\n[exit code 2]'],
    ['that there was nothing', 'true', '[no output]'],
    ['only the exit code when that is all', 'false', '[exit code 1]'],
  ])('%s', async (_, command, expected) => {
    const { read } = await openTool()
    expect(await read(command)).toBe(expected)
  })

  test('where the shell stands, when that has changed', async () => {
    const { read, workdir } = await openTool()
    expect(await read('mkdir sub; cd sub')).toBe(`[The shell is now in ${workdir}/sub.]`)
    expect(await read('true')).toBe('[no output]')
  })

  test('the pid of a background process and where its output goes', async () => {
    const { read } = await openTool()
    expect(await read('sleep 20 &')).toMatch(
      /^\[background pid \d+\]\n\[Output of background processes goes to \S+\.\]$/,
    )
  })
})
