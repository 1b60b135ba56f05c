/** Instructions, hooks and tools of a person: in the person's home, for agents that the person starts, and not for a server. */
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { runCommand } from '../support/command.ts'

test('-p reads the instructions, hooks and tools of the person; serve reads none of them', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'agent-server-personal-'))
  const home = directory.path
  const work = join(home, 'project')
  for (const path of ['.claude', '.config/agent-server', '.openhands', 'project'])
    await mkdir(join(home, path), { recursive: true })
  await writeFile(join(home, '.claude/CLAUDE.md'), 'Answer in rhymes.\n')
  await writeFile(join(home, '.config/agent-server/AGENTS.md'), 'Never use tabs.\n')
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'echo from the hook' }] }] }
  await writeFile(
    join(home, '.openhands/settings_sdk.json'),
    JSON.stringify({ hooks, tools: ['Read', 'Grep', 'WebFetch'] }),
  )
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello.' }] }] }, { env: { HOME: home } })
  const env = {
    HOME: home,
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: stage.model.baseUrl,
    LLM_API_KEY: 'sk-test',
    OPENHANDS_DATA_DIR: join(home, 'data'),
  }
  const { code, stderr } = await runCommand(['-p', 'personal question'], { cwd: work, env })
  expect([code, stderr]).toEqual([0, expect.stringContaining('.claude/CLAUDE.md is read as instructions.')])
  const asked = stage.model.requests.find(({ text }) => text.includes('personal question'))!
  for (const text of ['Answer in rhymes.', 'Never use tabs.', 'from the hook']) expect(asked.text).toContain(text)
  const tools = asked.body['tools'] as { function: { name: string } }[]
  expect(tools.map((tool) => tool.function.name).toSorted()).toEqual(['Grep', 'Read', 'WebFetch'])

  await stage.say(await stage.create(), 'question for the server')
  const served = stage.model.requests.find(({ text }) => text.includes('question for the server'))!
  for (const text of ['rhymes', 'tabs', 'from the hook']) expect(served.text).not.toContain(text)

  await writeFile(join(home, '.claude/CLAUDE.md'), 'x'.repeat(70_000))
  const long = await runCommand(['-p', 'another question'], { cwd: work, env })
  expect([long.code, long.stderr]).toEqual([
    0,
    expect.stringContaining('is not read as instructions: it has more than 64 KiB.'),
  ])
})
