/** What the chat does with what is typed: completion, images, messages that are sent, and earlier prompts. */
import { execFileSync } from 'node:child_process'
import { appendFile, chmod, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Completion } from '../../../src/cli/chat/input/completion.ts'
import { withImages } from '../../../src/cli/chat/input/images.ts'
import { PromptHistory } from '../../../src/cli/chat/input/prompt-history.ts'

let directory: string
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'chat-input-'))))
afterAll(() => rm(directory, { recursive: true }))

describe('completion', () => {
  const completion = (isOff = false) =>
    new Completion({
      commands: () => [{ name: 'exit', description: 'Leaves\x1b]52;c;ZXZpbA==\x07\nthe chat.' }],
      findFiles: () => Promise.resolve(['notes.md', 'evil\x1b[2J.md', 'a"b.md']),
      isOff: () => isOff,
    })
  const apply = (typed: string, value: string, prefix: string) =>
    completion().applyCompletion([typed], 0, typed.length, { value, label: '' }, prefix).lines[0]

  test('replaces what has been typed since the list was made, if the choice still fits', () => {
    expect(apply('/exi', '/exit ', '/e')).toBe('/exit ')
    expect(apply('/mcp-c', '/model ', '/m')).toBe('/mcp-c')
    expect(apply('see @notes', '@notes.md ', '@no')).toBe('see @notes.md ')
    expect(apply('see @other', '@notes.md ', '@o')).toBe('see @other')
  })

  test('offers no name that the prompt cannot hold, and no control characters of a project', async () => {
    const options = { signal: new AbortController().signal }
    const files = await completion().getSuggestions(['@'], 0, 1, options)
    expect(files?.items.map(({ label }) => label)).toEqual(['notes.md'])
    const commands = await completion().getSuggestions(['/'], 0, 1, options)
    expect(commands?.items.map(({ description }) => description)).toEqual(['Leaves ⏎ the chat.'])
    expect(await completion(true).getSuggestions(['/'], 0, 1, options)).toBeNull()
  })
})

test('pipes, devices, directories and large files are not attached, and hold no message', async () => {
  const path = (name: string) => join(directory, name)
  execFileSync('mkfifo', [path('pipe.png')])
  await symlink('/dev/zero', path('zero.png'))
  await symlink('/', path('root.png'))
  await writeFile(path('large.png'), '\x89PNG', 'latin1')
  await truncate(path('large.png'), 6 * 1024 * 1024)
  const { parts, notes } = await withImages(
    `./pipe.png ./zero.png ./root.png ./large.png ${'.'.repeat(20_000_000)}x`,
    directory,
  )
  expect(parts).toHaveLength(1)
  expect(notes.map((note) => note.replace(/.*: /, ''))).toEqual([
    'it is not a file.',
    'it is not a file.',
    'it is not a file.',
    'it has more than 5 MiB.',
  ])
})

describe('earlier prompts', () => {
  const path = () => join(directory, 'state', 'chat-history')

  test('are kept in a file that only the user can read, without those that begin with a space', async () => {
    const history = new PromptHistory(path())
    expect(await history.read()).toEqual([])
    history.add('one', 'one')
    history.add('one', 'one ')
    history.add('secret', ' secret')
    history.add('x'.repeat(20_000), '')
    history.add('two\nlines', 'two\nlines')
    await history.flush()
    expect(await new PromptHistory(path()).read()).toEqual(['one', 'two\nlines'])
    expect((await stat(path())).mode & 0o777).toBe(0o600)
    await chmod(path(), 0o644)
    await new PromptHistory(path()).read()
    expect((await stat(path())).mode & 0o777).toBe(0o600)
  })

  test('are bounded, and a damaged file keeps what can be read', async () => {
    await appendFile(
      path(),
      `{"no": "string"}\nbroken\n${`${JSON.stringify('y'.repeat(9000))}\n`.repeat(300)}"last"\n"half`,
    )
    expect((await new PromptHistory(path()).read()).length).toBe(100)
    expect((await readFile(path(), 'utf8')).length).toBeLessThan(1_000_000)
    expect((await new PromptHistory(path()).read()).at(-1)).toBe('last')
  })

  test('need no file', async () => {
    const history = new PromptHistory('/proc/none/chat-history')
    history.add('one', 'one')
    await history.flush()
    expect(await history.read()).toEqual([])
  })
})
