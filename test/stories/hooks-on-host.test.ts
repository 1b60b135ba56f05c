/** Hooks of a server without a sandbox: what a hook leaves running is ended there, too. */
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'

test('processes that left the process tree of their hook end with it', async () => {
  await using stage = await setStage(
    ({ body }) => (body.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : bash('echo x')),
    { env: { OPENHANDS_ISOLATION: 'none' } },
  )
  const hook = { type: 'command', command: '(setsid sleep 600 >/dev/null 2>&1 &); setsid sleep 600 & exit 2' }
  const id = await stage.create({ hooks: { PreToolUse: [{ hooks: [hook] }] } })
  const events = await stage.say(id, 'go')
  expect(events.find(({ type }) => type === 'ToolResult')).toMatchObject({ error_type: 'denied' })
  await expect.poll(() => markedProcesses(id).filter(({ name }) => name === 'sleep')).toEqual([])
})
