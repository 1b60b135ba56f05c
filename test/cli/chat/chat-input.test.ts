/** What the chat does with what is typed: completion, images, messages that are sent, and earlier prompts. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  mkdtempDisposable,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createTheme } from '../../../src/cli/chat/render/theme.ts'
import { FileCompletion } from '../../../src/cli/chat/input/file-completion.ts'
import { HistorySearch } from '../../../src/cli/chat/input/history-search.ts'
import { KEYS, Terminal } from './support/terminal.ts'
import { visibleWidth } from '@earendil-works/pi-tui'
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

describe('a search in earlier prompts', () => {
  const theme = createTheme(false)
  const prompts = ['fix the tests', 'docs', 'fix the Build', '修复构建 now', 'fix the Build']
  const searchFor = (...keys: string[]) => {
    const search = new HistorySearch(prompts, theme)
    const steps = keys.map((key) => search.handleKey(key))
    return { search, match: search.match, step: steps.at(-1) }
  }

  test('finds the latest, then older ones, each once; capitals count if some are typed', () => {
    expect(searchFor('fix').match).toBe('fix the Build')
    expect(searchFor('f', 'i', 'x', KEYS.ctrlR).match).toBe('fix the tests')
    expect(searchFor('fix', KEYS.ctrlR, KEYS.ctrlR).match).toBe('fix the tests')
    expect(searchFor('the b').match).toBe('fix the Build')
    expect(searchFor('The').match).toBeUndefined()
    expect(searchFor('docsx').match).toBeUndefined()
    expect(searchFor('docsx', '\x7f').match).toBe('docs')
    expect(searchFor('构').match).toBe('修复构建 now')
    expect(searchFor().match).toBeUndefined()
    expect(searchFor(KEYS.ctrlR).match).toBe('fix the Build')
  })

  test('ends with a key, and no line is wider than the terminal', () => {
    expect(searchFor('docs', KEYS.enter).step).toBe('send')
    expect(searchFor('nothing of that', KEYS.enter).step).toBe('leave')
    expect(searchFor('docs', KEYS.escape).step).toBe('take')
    expect(searchFor('docs', KEYS.ctrlC).step).toBe('leave')
    expect(searchFor('docs', KEYS.left).step).toBe('pass')
    const { search } = searchFor('构')
    search.type('x'.repeat(300))
    for (const width of [1, 2, 10, 60]) {
      for (const each of [search, searchFor('构').search])
        expect(Math.max(...each.lines(width, true).map((line) => visibleWidth(line)))).toBeLessThanOrEqual(
          Math.max(width, 2),
        )
    }
  })
})

describe('files after @', () => {
  const tree: Record<string, string> = {
    '.gitignore': '# built\n/dist\n*.log\n!keep.log\nnode_modules/\nsrc/*/gen\n',
    '.git/config': '',
    'dist/main.js': '',
    'a.log': '',
    'keep.log': '',
    'node_modules/x/index.js': '',
    'src/app/main.ts': '',
    'src/app/gen/api.ts': '',
    'src/app/.gitignore': 'secret*\n!*.log\n',
    'src/app/secret.txt': '',
    'src/app/b.log': '',
    'src/dist/kept.ts': '',
  }
  const entries = (path: string) => {
    const below = Object.keys(tree).filter((each) => path === '' || each.startsWith(`${path}/`))
    const names = new Set(below.map((each) => each.slice(path === '' ? 0 : path.length + 1).split('/')[0]!))
    return [...names].map((name) => {
      const whole = path === '' ? name : `${path}/${name}`
      return { path: whole, name, type: whole in tree ? 'file' : 'directory', size: tree[whole]?.length ?? 0 }
    })
  }
  const asked: string[] = []
  const files = {
    list: ({ path }: { path: string }) =>
      Promise.resolve({ items: asked.push(path) ? entries(path.replace(/\/$/, '')) : [] }),
    get: (path: string) => Promise.resolve(new Response(tree[path])),
  }
  const completion = new FileCompletion(true)
  const find = (part: string) => completion.find({ id: 'a', files } as never, part, new AbortController().signal) // what it uses

  test('are found by some of their letters, without those of git and those that it ignores', async () => {
    // An index is used for some seconds, however long the machine takes for this.
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    expect(await find('sam')).toEqual(['src/app/main.ts'])
    expect(await find('main')).toEqual(['src/app/main.ts'])
    expect((await find('log')).toSorted()).toEqual(['keep.log', 'src/app/b.log'])
    expect(await find('kept')).toEqual(['src/dist/kept.ts'])
    for (const ignored of ['config', 'gen', 'secret', 'index.js']) expect(await find(ignored)).toEqual([])
    expect(await find('')).toEqual(['.gitignore', 'keep.log', 'src/'])
    expect(await find('src/app/')).toEqual(['src/app/main.ts', 'src/app/.gitignore', 'src/app/b.log'])
    expect(asked.filter((path) => path === 'src/app')).toHaveLength(1)
    expect(asked.filter((path) => /^(dist|node_modules|\.git)/.test(path))).toEqual([])
  })
})

test('absolute paths after @ are found in the additional directories only', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'agent-server-added-'))
  const [library, other] = [join(directory.path, 'library'), join(directory.path, 'other')]
  await mkdir(join(library, 'src'), { recursive: true })
  await mkdir(other)
  await writeFile(join(library, 'some.txt'), '')
  const conversation = { get: () => Promise.resolve({ additional_directories: [library] }) } as never // what it uses
  const find = (part: string) => new FileCompletion(true).find(conversation, part, AbortSignal.timeout(60_000))
  expect(await find(directory.path)).toEqual([`${library}/`])
  expect(await find(`${library}/s`)).toEqual([`${library}/some.txt`, `${library}/src/`])
  expect(await find(`${library}/src/`)).toEqual([])
  expect(await new FileCompletion(false).find(conversation, library, AbortSignal.timeout(60_000))).toEqual([])
  for (const elsewhere of [`${other}/`, '/etc/', `${library}/../other/`]) expect(await find(elsewhere)).toEqual([])
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

test('a key that was pressed before a panel was drawn does not answer it, however long the drawing takes', async () => {
  const cwd = await mkdtemp(join(directory, 'panel-'))
  const program = join(import.meta.dirname, 'children/slow-panel-program.ts')
  await using terminal = new Terminal([process.execPath, program], { env: {}, cwd })
  await terminal.until(() => existsSync(join(cwd, 'drawing')), 'to draw the panel')
  terminal.press('y')
  await terminal.shows(/\ny\n/)
  expect(terminal.text).toContain('answered by: none')
  terminal.press(KEYS.ctrlC)
  await terminal.shows('\nready')
  terminal.press('y')
  await terminal.shows('answered by: y')
})
