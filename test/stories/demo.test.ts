import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { launch } from '../support/server.ts'

test('the demo shows an agent that meets an error and fixes it, says what is scripted, and leaves nothing behind', async () => {
  const temporary = await mkdtemp(join(tmpdir(), 'agent-server-demo-test-'))
  const { exited, output } = launch(['demo'], { env: { TMPDIR: temporary } })
  expect(await exited, output()).toBe(0)

  const said = output()
  expect(said).toMatch(/its lines are scripted/)
  expect(said).toMatch(/the commands it runs and the files they make are real/)
  const story = [
    'You: Write a script',
    '$ ./total.sh sales.csv',
    'amout: unbound variable',
    'Line 5 reads a variable',
    'total: 505',
    'steps, ',
  ]
  const places = story.map((line) => said.indexOf(line))
  expect(places, said).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
  for (const provider of ['OpenAI', 'Ollama', 'vLLM', 'OpenRouter']) expect(said).toContain(provider)
  expect(said, 'no colour where nobody looks').not.toContain('\x1b[')

  await expectShownInReadme(said)
  expect((await readdir(temporary)).filter((name) => name.startsWith('agent-server'))).toEqual([])
  await rm(temporary, { recursive: true, force: true })
})

/** The README shows this output. A line `…` there leaves lines out, and the last line has times and tokens of its own. */
async function expectShownInReadme(said: string): Promise<void> {
  const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8')
  const shown = /<!-- demo -->\n```text\n(.*?)```/s.exec(readme)![1]!
  const withoutFigures = (text: string) => text.replaceAll(/\d+ steps, .*? tokens/g, 'so many steps')
  for (const part of withoutFigures(shown).split(/^ *…\n/m)) expect(withoutFigures(said)).toContain(part)
}
