/** The first example of docs/hooks.md: its configuration calls its script, which denies one call and not the other. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { shownIn } from './blocks.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/hooks.md'), 'utf8')

test('the script of the page denies a call, and the agent reads why', async () => {
  const [, request] = /^```http\n(POST \/conversations\n.*?)^```$/ms.exec(page)!
  const [, script] = /^```python\n(.*?)^```$/ms.exec(page)!
  const { hooks } = shownIn(request!)![0]!.body as { hooks: { PreToolUse: object[] } }
  await using stage = await setStage([
    bash('mkdir -p kept/inner'),
    bash('rm -rf kept'),
    bash('ls kept'),
    { text: 'Ok.' },
  ])
  const workdir = join(stage.server.home, 'work')
  await mkdir(workdir)
  await writeFile(join(workdir, 'validate.py'), script!)
  const PreToolUse = JSON.parse(JSON.stringify(hooks.PreToolUse).replace('/opt/hooks', workdir))
  const id = await stage.create({ workdir, hooks: { PreToolUse } })
  const results = (await stage.say(id, 'go')).filter(({ type }) => type === 'ToolResult')
  expect(results).toMatchObject([
    { is_error: false },
    { error_type: 'denied', output: expect.stringContaining('Move directories to old/ instead of removing them.') },
    { is_error: false, output: { stdout: 'inner\n' } },
  ])
})
