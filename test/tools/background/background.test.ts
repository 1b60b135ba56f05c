import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BackgroundShells } from '../../../src/tools/background/background-shells.ts'
import { createBashOutput, createKillShell } from '../../../src/tools/background/bash-output.ts'
import { createBashTool } from '../../../src/tools/bash.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import type { ToolOutcome } from '../../../src/state/tool-call.ts'
import { eventually, openShells, processesOf } from '../../shell/shell-fixture.ts'
import { contextIn } from '../tool-fixture.ts'

/** A shell in a test writes its outputs elsewhere than a conversation's does: `stateDirectory` has both. */
async function openBackground() {
  const fixture = await openShells()
  const { shells, workdir, outputDir, conversationId } = fixture
  const background = new BackgroundShells({ shells, stateDirectory: dirname(outputDir) })
  const call = (tool: Tool, input: object): Promise<ToolOutcome> =>
    tool.run(tool.input.parse(input), contextIn(workdir))
  const bash = createBashTool({ shells, background })
  const start = async (command: string) => {
    const { output } = await call(bash, { command, run_in_background: true })
    return (output as { background_id: string }).background_id
  }
  const output = async (bash_id: string) => String((await call(createBashOutput(background), { bash_id })).output)
  const kill = (shell_id: string) => call(createKillShell(background), { shell_id })
  return { ...fixture, background, bash, call, start, output, kill, conversationId }
}

describe('a command in the background', () => {
  test('starts with the state of the session, which stays free for other commands', async () => {
    const { bash, call, start, output, workdir } = await openBackground()
    await call(bash, { command: 'mkdir sub; cd sub; export x=1' })
    const id = await start(
      `echo "$PWD $x"; read line < <(until [ -e ${join(workdir, 'go')} ]; do sleep 0.02; done; echo gone)`,
    )
    expect((await call(bash, { command: 'echo free' })).output).toMatchObject({ stdout: 'free\n' })
    let seen = ''
    await eventually(async () => (seen += await output(id)).includes(`${workdir}/sub 1\n`))
    expect(seen).toContain('[running]')
    await call(bash, { command: `touch ${join(workdir, 'go')}` })
    await eventually(async () => (await output(id)).includes('[completed with exit code 0]'))
  })

  test('returns all output once, by stream, and the exit code at the end', async () => {
    const { start, output, call, bash } = await openBackground()
    const id = await start('echo one; echo two >&2; exit 3')
    let seen = ''
    await eventually(async () => (seen += await output(id)).includes('exit code 3'))
    expect(seen.match(/one/g)).toHaveLength(1)
    expect(seen.match(/\[stderr\]\ntwo/g)).toHaveLength(1)
    expect(await output(id)).toBe('[completed with exit code 3]\n[no new output]')
    expect(await call(bash, { command: 'true' })).not.toHaveProperty('error')
  })

  test('gives long output in parts, without cutting a character', async () => {
    const { start, output } = await openBackground()
    const id = await start(`printf '€%.0s' $(seq 15000)`)
    let seen = ''
    let parts = 0
    for (let isOver = false; !isOver;) {
      const text = await output(id)
      isOver = text.startsWith('[completed') && !text.includes('call again')
      if (/€/.test(text)) parts++
      expect(text).not.toContain('\ufffd')
      seen += text.replace(/[^€]/g, '')
    }
    expect(seen).toHaveLength(15_000)
    expect(parts).toBeGreaterThan(1)
  })

  test('is ended with all of its processes', async () => {
    const { start, output, kill, conversationId, bash, call } = await openBackground()
    await call(bash, { command: 'true' })
    const before = processesOf(conversationId)
    const id = await start('setsid sleep 1000 & sleep 1000')
    await eventually(() => processesOf(conversationId) > before + 1)
    expect(await kill(id)).toEqual({ output: `${id} was ended.` })
    await eventually(() => processesOf(conversationId) === before)
    expect(await output(id)).toContain('[killed]')
    expect((await kill(id)).output).toContain('had ended already')
  })

  test('is forgotten with its output when the shells are closed', async () => {
    const { start, shells, output, outputDir } = await openBackground()
    const id = await start('echo x; sleep 1000')
    await eventually(async () => (await output(id)).includes('x'))
    await shells.close()
    await eventually(async () => !(await output(id)).includes('[running]'))
    expect(existsSync(join(outputDir, 'background'))).toBe(false)
  })

  test('that is not known is an error that names those that are', async () => {
    const { start, kill, background, call } = await openBackground()
    const id = await start('true')
    const { error } = await call(createBashOutput(background), { bash_id: 'nope' })
    expect(error).toMatchObject({ type: 'invalid_input', message: expect.stringContaining(id) })
    expect((await kill('nope')).error?.type).toBe('invalid_input')
  })

  test('is refused when too many run', async () => {
    const { start, bash, call } = await openBackground()
    for (let count = 0; count < 16; count++) await start('sleep 1000')
    const { error } = await call(bash, { command: 'true', run_in_background: true })
    expect(error).toMatchObject({ type: 'failed', message: expect.stringContaining('end one with KillShell') })
  })

  test('is shown to the model with its id and the files of its output', async () => {
    const { bash, call } = await openBackground()
    const { output } = await call(bash, { command: 'true', run_in_background: true, description: 'Does nothing' })
    expect(bash.render!(output)).toMatch(
      /^\[It runs in the background with the id [\w-]+\. Its output goes to \S+ and \S+\.\]$/,
    )
  })
})
