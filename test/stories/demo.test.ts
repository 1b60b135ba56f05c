import { exec } from 'node:child_process'
import { mkdtempDisposable, readFile, readdir, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { launch } from '../support/server.ts'

test('the demo shows an agent that meets an error and fixes it, says what is scripted, and leaves nothing behind', async () => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'demo-'))
  const { exited, output } = launch(['demo'], { env: { TMPDIR: temporary.path } })
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
  const serve = / is (.*) serve --generate-key/.exec(said)?.[1]
  const { stdout } = await promisify(exec)(`${serve} --version`, { cwd: temporary.path })
  expect(stdout, 'its advice is a command that works in any directory').toMatch(/^\d+\.\d+\.\d+\n$/)
  for (const provider of ['OpenAI', 'Ollama', 'vLLM', 'OpenRouter']) expect(said).toContain(provider)
  expect(said, 'no colour where nobody looks').not.toContain('\x1b[')

  await expectShownInReadme(said)
  expect(await readdir(temporary.path)).toEqual([])
})

test('a demo that is stopped removes what it made, and what one that was killed has left', async () => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'demo-'))
  // On a slow machine a demo may be over before the signal is sent: then the next one gets it.
  const codeOf = async (signal: NodeJS.Signals): Promise<number | null> => {
    const { child, exited, output } = launch(['demo'], { env: { TMPDIR: temporary.path } })
    await expect.poll(output).toContain('The server runs on')
    child.kill(signal)
    const code = await exited
    return code === 0 && output().includes('The same with a real model') ? await codeOf(signal) : code
  }
  expect(await codeOf('SIGKILL')).toBe(null)
  const [left] = await readdir(temporary.path)
  // Others may be about to lock theirs.
  const time = Date.now() / 1000 - 3600
  await utimes(join(temporary.path, left!), time, time)
  expect(await Promise.all([codeOf('SIGINT'), codeOf('SIGTERM')])).toEqual([130, 143])
  expect(await readdir(temporary.path)).toEqual([])
})

/** The README shows this output. A line `…` there leaves lines out, and the last line has times and tokens of its own. */
async function expectShownInReadme(said: string): Promise<void> {
  const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8')
  const shown = /<!-- demo -->\n```text\n(.*?)```/s.exec(readme)![1]!
  const withoutFigures = (text: string) => text.replaceAll(/\d+ steps, .*? tokens/g, 'so many steps')
  for (const part of withoutFigures(shown).split(/^ *…\n/m)) expect(withoutFigures(said)).toContain(part)
}
