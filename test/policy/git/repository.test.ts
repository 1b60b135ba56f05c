/** Why git may run a program in a directory, without a git: what it reads there is made here. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { programOfGit } from '../../../src/policy/git/repository.ts'
import { makeIndex } from './made-index.ts'

type Files = Readonly<Record<string, string | Buffer>>

/** `work` is the workdir; a name that ends with a slash is a directory, and a text behind `-> ` is the target of a link. */
function makeFiles(files: Files): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-repository-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [name, text] of Object.entries({ 'work/': '', ...files })) {
    const path = join(root, name)
    mkdirSync(name.endsWith('/') ? path : dirname(path), { recursive: true })
    if (typeof text === 'string' && text.startsWith('-> ')) symlinkSync(text.slice(3), path)
    else if (!name.endsWith('/')) writeFileSync(path, text)
  }
  return root
}

const HEAD = { 'work/.git/HEAD': 'ref: refs/heads/main\n' }
const submodules = (...names: string[]) =>
  makeIndex(
    2,
    names.map((name) => ({ name, isSubmodule: true })),
  )
const EVIL = '[core]\npager = x\n'
const OTHER = 'finds a repository that is not in a directory .git'
const PAGER = 'has a configuration that sets core.pager, which may run a program'
const LINKS = 'finds links in its own files, which may lead outside of the workdir'

test.each<[rule: string, files: Files, program: string | undefined]>([
  ['there is no repository', {}, undefined],
  ['there is nothing in the repository', { 'work/.git/': '' }, undefined],
  ['the repository has a HEAD only', HEAD, undefined],
  ['its configuration is harmless', { ...HEAD, 'work/.git/config': '[core]\nbare = false\n' }, undefined],
  ['its configuration may run a program', { ...HEAD, 'work/.git/config': EVIL }, PAGER],
  ['the configuration of its work tree may run one', { ...HEAD, 'work/.git/config.worktree': EVIL }, PAGER],
  ['its configuration is a directory', { ...HEAD, 'work/.git/config/': '' }, 'has a configuration that cannot be read'],
  ['its configuration is a link', { ...HEAD, 'work/.git/config': '-> other', 'work/.git/other': '' }, LINKS],
  ['a repository above may run one', { 'work/a': '', '.git/HEAD': '', '.git/config': EVIL }, PAGER],
  ['a repository above a complete one is none', { ...HEAD, '.git/HEAD': '', '.git/config': EVIL }, undefined],
  [
    'a repository above an incomplete one may run one',
    { 'work/.git/': '', '.git/HEAD': '', '.git/config': EVIL },
    PAGER,
  ],
  ['the workdir has a HEAD only', { 'work/HEAD': '' }, undefined],
  ['the workdir has objects only', { 'work/objects/': '', 'work/refs/': '', 'work/commondir': '' }, undefined],
  ['the workdir has a HEAD and objects', { 'work/HEAD': '', 'work/objects/': '' }, OTHER],
  ['the workdir has a HEAD and refs', { 'work/HEAD': '', 'work/refs/': '' }, OTHER],
  ['the workdir has a HEAD and a commondir', { 'work/HEAD': '', 'work/commondir': '' }, OTHER],
  ['a directory above has a HEAD and refs', { HEAD: '', 'refs/': '' }, OTHER],
  ['.git names a directory of the project', { 'work/.git': 'gitdir: hidden\n', 'work/hidden/HEAD': '' }, OTHER],
  [
    '.git is a link to a directory of the project',
    { 'work/.git': '-> hidden', 'work/hidden/HEAD': '' },
    'cannot be checked there',
  ],
  ['.git names a directory in a .git', { 'work/.git': 'gitdir: x/.git/y\n', 'work/x/.git/y/HEAD': '' }, undefined],
  ['.git names one without a line end', { 'work/.git': 'gitdir: x/.git', 'work/x/.git/HEAD': '' }, undefined],
  ['.git is empty', { 'work/.git': '' }, 'finds a .git that cannot be read'],
  ['.git names nothing', { 'work/.git': 'gitdir: \n' }, 'finds a .git that cannot be read'],
  [
    '.git has another key',
    { 'work/.git': 'xgitdir: x/.git\n', 'work/x/.git/HEAD': '' },
    'finds a .git that cannot be read',
  ],
  [
    '.git has two lines',
    { 'work/.git': 'gitdir: x/.git\ny\n', 'work/x/.git/HEAD': '' },
    'finds a .git that cannot be read',
  ],
  [
    '.git has a NUL character',
    { 'work/.git': 'gitdir: x/.git\0\n', 'work/x/.git/HEAD': '' },
    'finds a .git that cannot be read',
  ],
  [
    '.git is as long as it may be',
    { 'work/.git': `gitdir: ${'./'.repeat(2041)}x/.git`, 'work/x/.git/HEAD': '' },
    undefined,
  ],
  [
    '.git is longer',
    { 'work/.git': `gitdir: ${'./'.repeat(2042)}x/.git`, 'work/x/.git/HEAD': '' },
    'finds a file that is too large',
  ],
  ['.git names a repository that is not there', { 'work/.git': 'gitdir: x\n' }, 'cannot be checked there'],
  [
    'it is outside of the workdir',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '' },
    'finds a repository outside of the workdir, which does not name the workdir',
  ],
  [
    'one outside names the workdir',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/gitdir': '../work/.git\n' },
    undefined,
  ],
  [
    'one outside names another workdir',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/gitdir': '../work2/.git\n' },
    'finds a repository outside of the workdir, which does not name the workdir',
  ],
  [
    'one outside names the workdir in its configuration',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/config': '[core]\nworktree = ../work\n' },
    undefined,
  ],
  [
    'one outside names another work tree',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/config': '[core]\nworktree = ../work2\n' },
    'finds a repository outside of the workdir, which does not name the workdir',
  ],
  [
    'one outside has a configuration that is a directory',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/config/': '' },
    'finds a repository outside of the workdir, which does not name the workdir',
  ],
  [
    'one outside has a configuration that may run a program',
    { 'work/.git': 'gitdir: ../other\n', 'other/HEAD': '', 'other/config': EVIL },
    'finds a repository outside of the workdir, which does not name the workdir',
  ],
  [
    'it is in a directory whose name begins with two dots',
    { 'work/.git': 'gitdir: ..x/.git\n', 'work/..x/.git/HEAD': '' },
    undefined,
  ],
  [
    'its common directory is outside of the workdir',
    { ...HEAD, 'work/.git/commondir': '../../other\n', 'other/HEAD': '' },
    'takes what it shows from outside of the workdir',
  ],
  [
    'its common directory is one of the project',
    { ...HEAD, 'work/.git/commondir': '../x\n', 'work/x/HEAD': '' },
    OTHER,
  ],
  ['its common directory is in .git', { ...HEAD, 'work/.git/commondir': 'x\n', 'work/.git/x/HEAD': '' }, undefined],
  ['its common directory has a program', { ...HEAD, 'work/.git/commondir': 'x', 'work/.git/x/config': EVIL }, PAGER],
  [
    'its common directory has a hook',
    { ...HEAD, 'work/.git/commondir': 'x', 'work/.git/x/hooks/post-index-change': '' },
    'has a hook post-index-change, which is a program',
  ],
  // Git removes a carriage return at the end of a line.
  [
    'its common directory is named with a carriage return',
    { ...HEAD, 'work/.git/commondir': 'x\r\n', 'work/.git/x\r/': '', 'work/.git/x/config': EVIL },
    'finds a commondir that cannot be read',
  ],
  [
    '.git names a directory with a carriage return',
    { 'work/.git': 'gitdir: x/.git\r\n', 'work/x/.git\r/HEAD': '', 'work/x/.git/config': EVIL },
    'finds a .git that cannot be read',
  ],
  [
    'its common directory is named by no text',
    { ...HEAD, 'work/.git/commondir': 'x\ufffd\n', 'work/.git/x\ufffd/': '' },
    'finds a commondir that cannot be read',
  ],
  [
    'its common directory is not named',
    { ...HEAD, 'work/.git/commondir': '\n' },
    'finds a commondir that cannot be read',
  ],
  [
    'its common directory has two lines',
    { ...HEAD, 'work/.git/commondir': 'x\ny\n', 'work/.git/x/': '' },
    'finds a commondir that cannot be read',
  ],
  [
    'its commondir is a directory',
    { ...HEAD, 'work/.git/commondir/': '', 'work/.git/directory/': '' },
    'finds a commondir that cannot be read',
  ],
  [
    'it has a hook for what git sees',
    { ...HEAD, 'work/.git/hooks/post-index-change': '' },
    'has a hook post-index-change, which is a program',
  ],
  ['it has other hooks', { ...HEAD, 'work/.git/hooks/pre-commit': '' }, undefined],
  [
    'its hooks are elsewhere, and one is for what git sees',
    { ...HEAD, 'work/.git/config': '[core]\nhooksPath = tools\n', 'work/tools/post-index-change': '' },
    'has a hook post-index-change, which is a program',
  ],
  [
    'its hooks are in its own files, and one is for what git sees',
    { ...HEAD, 'work/.git/config': '[core]\nhooksPath = tools\n', 'work/.git/tools/post-index-change': '' },
    'has a hook post-index-change, which is a program',
  ],
  ['its hooks are elsewhere', { ...HEAD, 'work/.git/config': '[core]\nhooksPath = .husky/_-x\n' }, undefined],
  ...['~/x', 'a b', '%(prefix)/x', '', 'a$'].map((path): [string, Files, string] => [
    `its hooks are in ${JSON.stringify(path)}`,
    { ...HEAD, 'work/.git/config': `[core]\nhooksPath = ${path}\n` },
    'has a configuration that sets core.hookspath, which may run a program',
  ]),
  ['its work tree is the workdir', { ...HEAD, 'work/.git/config': '[core]\nworktree = ..\n' }, undefined],
  [
    'its work tree is another one',
    { ...HEAD, 'work/.git/config': '[core]\nworktree = ../..\n' },
    'has a configuration that names another work tree',
  ],
  [
    'one of its work trees is another one',
    { ...HEAD, 'work/.git/config': '[core]\nworktree = ..\nworktree = ../..\n' },
    'has a configuration that names another work tree',
  ],
  [
    'it ignores commits of the usual file',
    {
      ...HEAD,
      'work/.git/config': '[blame]\nignoreRevsFile = .git-blame-ignore-revs\n',
      'work/.git-blame-ignore-revs': '',
    },
    undefined,
  ],
  [
    'it ignores commits of another file',
    { ...HEAD, 'work/.git/config': '[blame]\nignoreRevsFile = other\n', 'work/other': '' },
    'has a configuration that sets blame.ignoreRevsFile, which may show another file',
  ],
  [
    'it ignores commits of a link',
    {
      ...HEAD,
      'work/.git/config': '[blame]\nignoreRevsFile = .git-blame-ignore-revs\n',
      'work/.git-blame-ignore-revs': '-> other',
    },
    'has a configuration that sets blame.ignoreRevsFile, which may show another file',
  ],
  ['a link is in the place of its hooks', { ...HEAD, 'work/.git/hooks': '-> ../hooks' }, undefined],
  ...[
    'x',
    'info/x',
    'objects/x',
    'objects/info/x',
    'objects/pack/x',
    'rebase-apply/x',
    'rebase-merge/x',
    'refs/x',
    'sequencer/x',
    'refs/hooks',
  ].map((name): [string, Files, string] => [
    `a link is in the place of ${name}`,
    { ...HEAD, [`work/.git/${name}`]: '-> y' },
    LINKS,
  ]),
  ['a link is deeper in its files', { ...HEAD, 'work/.git/x/y': '-> z' }, undefined],
  ['a link is in its common directory', { ...HEAD, 'work/.git/commondir': 'x', 'work/.git/x/y': '-> z' }, LINKS],
  [
    'its objects are elsewhere, too',
    { ...HEAD, 'work/.git/objects/info/alternates': '' },
    'takes what it shows from another repository',
  ],
  ['a submodule is not there', { ...HEAD, 'work/.git/index': submodules('sub') }, undefined],
  ['a submodule is harmless', { ...HEAD, 'work/.git/index': submodules('sub'), 'work/sub/.git/HEAD': '' }, undefined],
  [
    'a submodule may run a program',
    { ...HEAD, 'work/.git/index': submodules('a', 'b'), 'work/a/.git/HEAD': '', 'work/b/.git/config': EVIL },
    PAGER,
  ],
  [
    'a submodule of a submodule may run a program',
    { ...HEAD, 'work/.git/index': submodules('a'), 'work/a/.git/index': submodules('b'), 'work/a/b/.git/config': EVIL },
    PAGER,
  ],
  ['its index cannot be read', { ...HEAD, 'work/.git/index': 'x' }, 'has an index that cannot be read with certainty'],
  ['its index is a directory', { ...HEAD, 'work/.git/index/': '' }, 'has an index that cannot be read with certainty'],
])('%s', (_, files, program) => expect(programOfGit(join(makeFiles(files), 'work'))).toBe(program))

test('up to 20 repositories are looked into', () => {
  const names = Array.from({ length: 20 }, (_, at) => `s${at}`)
  const files = (count: number): Files => ({
    ...HEAD,
    'work/.git/index': submodules(...names.slice(0, count)),
    ...Object.fromEntries(names.map((name) => [`work/${name}/.git/HEAD`, ''])),
  })
  expect(programOfGit(join(makeFiles(files(19)), 'work'))).toBeUndefined()
  expect(programOfGit(join(makeFiles(files(20)), 'work'))).toBe('finds too many repositories')
})

test('up to 64 directories are looked into', () => {
  const root = makeFiles({})
  const depth = root.split(sep).length - 1
  const below = (count: number) => {
    const directory = join(root, 'a/'.repeat(count - depth))
    mkdirSync(directory, { recursive: true })
    return programOfGit(directory)
  }
  expect(below(63)).toBeUndefined()
  expect(below(64)).toBe('may find a repository above too many directories')
})

test('a configuration of up to 256 KiB and an index of up to 16 MiB are read', () => {
  const root = makeFiles({ ...HEAD, 'work/.git/config': '' })
  const work = join(root, 'work')
  const config = join(work, '.git/config')
  writeFileSync(config, '#'.repeat(256 * 1024))
  expect(programOfGit(work)).toBeUndefined()
  writeFileSync(config, '#'.repeat(256 * 1024 + 1))
  expect(programOfGit(work)).toBe('finds a file that is too large')
  rmSync(config)
  const index = join(work, '.git/index')
  writeFileSync(index, '')
  truncateSync(index, 16 * 1024 * 1024)
  expect(programOfGit(work)).toBe('has an index that cannot be read with certainty')
  truncateSync(index, 16 * 1024 * 1024 + 1)
  expect(programOfGit(work)).toBe('finds a file that is too large')
})

test('what may not be looked into cannot be checked', () => {
  const work = join(makeFiles({ ...HEAD, 'work/.git/config': EVIL }), 'work')
  chmodSync(join(work, '.git'), 0)
  // The superuser reads it anyway.
  expect(programOfGit(work)).toBe(process.getuid?.() === 0 ? PAGER : 'cannot be checked there')
  chmodSync(join(work, '.git'), 0o700)
  expect(programOfGit(`${work}\0`)).toBe('cannot be checked there')
})
