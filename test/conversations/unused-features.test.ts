import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'

const CHILD = join(import.meta.dirname, 'children/trace-message.ts')

/** The files of features, by what a conversation without settings does not use. */
const FEATURES: Readonly<Record<string, RegExp>> = {
  webhooks: /^webhooks\//,
  tasks: /^(conversations\/tasks\/|state\/task-)/,
  subagents: /^(conversations\/subagents\/|state\/subagent|tools\/task\/)/,
  'client tools': /^(conversations\/client-tools\/|state\/client-)/,
  'client hooks': /^conversations\/client-hooks\//,
  hooks: /^(hooks|conversations\/hooks)\/|^state\/hook/,
  'MCP servers': /^(mcp\/|conversations\/mcp\.ts|state\/mcp)/,
  'slash commands': /^(project|conversations\/project)\/|^state\/command-text/,
  'output schema': /^agent\/output\//,
  'open requests':
    /^(conversations\/(requests\/|live\/ending-requests)|state\/(open-requests|open-permission|held-intents|waits))/,
}

/** Some more than run today. */
const MOST = { files: 130, functions: 520 }

let ran: { readonly files: readonly string[]; readonly functions: number }

beforeAll(async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD])
  ran = JSON.parse(stdout)
})

test('a message runs at most 520 functions, in at most 130 files', () => {
  expect(ran.functions).toBeLessThanOrEqual(MOST.functions)
  expect(ran.files.length).toBeLessThanOrEqual(MOST.files)
})

test('a message runs no function of a feature that its conversation does not use', () => {
  const { files } = ran
  expect(files).toContain('agent/loop.ts')
  expect(files).toContain('conversations/actor.ts')
  for (const [feature, path] of Object.entries(FEATURES))
    expect(
      files.filter((file) => path.test(file)),
      feature,
    ).toEqual([])
})
