/** Instructions, hooks and tools of a person: in the person's home, for agents that the person starts, and not for a server. */
import { mkdir, mkdtempDisposable, realpath, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { setStage } from '../support/agent.ts'
import { runCommand } from '../support/command.ts'

test('own instructions import files of the home, but nothing that a repository or a link leads to', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'agent-server-imports-'))
  const home = await realpath(directory.path)
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), text)
  }
  const own = `Own text. @style.md @~/notes/day.md @~/repo/readme.md @~/repo/linked.md @~/.openhands/settings_sdk.json @/etc/passwd
\`@~/in-code.md\` @someone @missing.md
\`\`\`
@~/in-code.md
\`\`\`
`
  await write('.claude/CLAUDE.md', own)
  await write('.claude/style.md', 'Style text. @CLAUDE.md @deep/1.md')
  for (const depth of [1, 2, 3, 4, 5]) await write(`.claude/deep/${depth}.md`, `Level ${depth}. @${depth + 1}.md`)
  await write('notes/day.md', 'Day text.')
  await write('in-code.md', 'Code text.')
  await write('.aws/credentials', 'Secret text.')
  await write('.openhands/settings_sdk.json', '{"api_key": "sk-key-of-the-settings"}')
  await write('repo/readme.md', 'Readme text. @inner/more.md @~/.aws/credentials @../.aws/credentials')
  await write('repo/inner/more.md', 'Inner text. @../readme.md @../other.md')
  await write('repo/other.md', 'Other text.')
  await symlink('../.aws/credentials', join(home, 'repo/linked.md'))
  const model = await startScriptedModel({ replies: [{ turns: [{ text: 'Hello.' }] }] })
  try {
    const env = {
      HOME: home,
      LLM_MODEL: 'scripted',
      LLM_BASE_URL: model.baseUrl,
      OPENHANDS_DATA_DIR: join(home, 'data'),
    }
    const { stderr } = await runCommand(['-p', 'question'], { cwd: join(home, 'notes'), env })
    const { text } = model.requests.at(-1)!
    for (const wanted of ['Own', 'Style', 'Day', 'Readme', 'Inner', 'Other'])
      expect(text.split(`${wanted} text.`)).toHaveLength(2)
    expect(text).toContain('Level 4.')
    for (const not of ['Level 5.', 'Code text', 'Secret text', 'sk-key-of', 'root:']) expect(text).not.toContain(not)
    for (const said of [
      /^.*\/notes\/day\.md is read as instructions\.$/m,
      /~\/\.aws\/credentials of .*\/repo\/readme\.md is not imported: only your own instructions/,
      /~\/repo\/linked\.md of .* is not imported: a link is in its path\./,
      /\/etc\/passwd of .* is not imported: it is outside of your home, or has secrets\./,
      /missing\.md of .* is not imported: it does not exist\./,
      /5\.md of .* is not imported: imports are at most 5 levels deep\./,
    ])
      expect(stderr).toMatch(said)
    expect(stderr).not.toContain('someone')
  } finally {
    await model.close()
  }
})

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
