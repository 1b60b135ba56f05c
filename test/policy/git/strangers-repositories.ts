/** Repositories as strangers send them: each would run a program when git only reads, and repositories as they usually are. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** `evil` is the path of a program. Changes a copy of a plain repository with one commit and a changed file. */
export type Change = (repository: string, evil: string) => void

export const git = (directory: string, ...args: string[]): void => {
  const who = ['-c', 'user.name=x', '-c', 'user.email=x@example.org', '-c', 'init.defaultBranch=main']
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'file' }
  execFileSync('git', [...who, ...args], { cwd: directory, env, stdio: 'ignore' })
}

const MAIN = 'ref: refs/heads/main\n'

const config = (repository: string, text: string) => appendFileSync(join(repository, '.git/config'), `\n${text}\n`)
const attributes = (repository: string, text: string) => writeFileSync(join(repository, '.gitattributes'), `${text}\n`)

export function createRepository(directory: string): void {
  mkdirSync(directory, { recursive: true })
  git(directory, 'init')
  writeFileSync(join(directory, 'a.txt'), 'one\n')
  git(directory, 'add', '.')
  git(directory, 'commit', '-m', 'first')
  writeFileSync(join(directory, 'a.txt'), 'two\n')
}

/** The files of a bare repository, as an archive may have them at its top. */
function unpackBare(repository: string): void {
  for (const name of ['HEAD', 'config', 'objects', 'refs', 'index', 'hooks'])
    renameSync(join(repository, '.git', name), join(repository, name))
  rmSync(join(repository, '.git'), { recursive: true })
}

function addSubmodule(repository: string): void {
  createRepository(join(repository, 'sub'))
  git(repository, 'add', 'sub')
}

function addHook(directory: string, evil: string): void {
  mkdirSync(directory, { recursive: true })
  cpSync(evil, join(directory, 'post-index-change'))
  chmodSync(join(directory, 'post-index-change'), 0o755)
}

/** Git runs the program for some command that only reads. */
export const RUNNING: Readonly<Record<string, Change>> = {
  'core.fsmonitor': (at, evil) => config(at, `[core]\nfsmonitor = ${evil}`),
  'core.fsmonitor behind its section': (at, evil) => config(at, `[core] fsmonitor = ${evil}`),
  'core.fsmonitor in capitals': (at, evil) => config(at, `[CORE]\n  FSMonitor=${evil}`),
  'core.fsmonitor over several lines': (at, evil) => config(at, `[core]\nfsmonitor = \\\n${evil}`),
  'core.fsmonitor behind a continued value': (at, evil) =>
    config(at, `[user]\nname = x \\\n  y\n[core]\nfsmonitor = ${evil}`),
  'core.fsmonitor behind returns': (at, evil) => config(at, `[core]\r\n\tfsmonitor = ${evil}\r`),
  'core.fsmonitor of a work tree': (at, evil) => {
    config(at, '[extensions]\nworktreeConfig = true')
    writeFileSync(join(at, '.git/config.worktree'), `[core]\nfsmonitor = ${evil}\n`)
  },
  'core.fsmonitor in an included file': (at, evil) => {
    writeFileSync(join(at, 'more'), `[core]\nfsmonitor = ${evil}\n`)
    config(at, '[include]\npath = ../more')
  },
  'core.fsmonitor in a file that is included under a condition': (at, evil) => {
    writeFileSync(join(at, 'more'), `[core]\nfsmonitor = ${evil}\n`)
    config(at, `[includeIf "gitdir:${at}/"]\npath = ../more`)
  },
  'core.fsmonitor behind a .git file': (at, evil) => {
    config(at, `[core]\nfsmonitor = ${evil}`)
    renameSync(join(at, '.git'), join(at, 'hidden'))
    writeFileSync(join(at, '.git'), 'gitdir: hidden\n')
  },
  'core.fsmonitor of a common directory': (at, evil) => {
    cpSync(join(at, '.git'), join(at, 'common'), { recursive: true })
    appendFileSync(join(at, 'common/config'), `\n[core]\nfsmonitor = ${evil}\n`)
    writeFileSync(join(at, '.git/commondir'), '../common\n')
  },
  'core.fsmonitor of an archive with HEAD, config, objects and refs': (at, evil) => {
    unpackBare(at)
    appendFileSync(join(at, 'config'), `\n[core]\nbare = false\nworktree = .\nfsmonitor = ${evil}\n`)
  },
  'gpg.program of an archive with HEAD and a common directory': (at, evil) => {
    signCommit(at)
    renameSync(join(at, '.git'), join(at, 'data'))
    appendFileSync(join(at, 'data/config'), `\n[gpg]\nprogram = ${evil}\n[log]\nshowSignature = true\n`)
    for (const name of ['HEAD', 'commondir']) writeFileSync(join(at, name), name === 'HEAD' ? MAIN : 'data\n')
  },
  'core.fsmonitor of a submodule': (at, evil) => {
    addSubmodule(at)
    config(join(at, 'sub'), `[core]\nfsmonitor = ${evil}`)
  },
  'core.fsmonitor of a submodule in an index of version 4': (at, evil) => {
    addSubmodule(at)
    git(at, 'update-index', '--index-version', '4')
    config(join(at, 'sub'), `[core]\nfsmonitor = ${evil}`)
  },
  'core.fsmonitor of a submodule in a split index': (at, evil) => {
    addSubmodule(at)
    git(at, 'update-index', '--split-index')
    config(join(at, 'sub'), `[core]\nfsmonitor = ${evil}`)
  },
  'core.fsmonitor of a submodule of a submodule': (at, evil) => {
    addSubmodule(at)
    addSubmodule(join(at, 'sub'))
    config(join(at, 'sub/sub'), `[core]\nfsmonitor = ${evil}`)
  },
  'filter.clean': (at, evil) => {
    attributes(at, '* filter=x')
    config(at, `[filter "x"]\nclean = ${evil}`)
  },
  'filter.process': (at, evil) => {
    attributes(at, '* filter=x')
    config(at, `[filter.x]\nprocess = ${evil}`)
  },
  'filter.clean by the attributes of the repository': (at, evil) => {
    mkdirSync(join(at, '.git/info'), { recursive: true })
    writeFileSync(join(at, '.git/info/attributes'), '* filter=x\n')
    config(at, `[filter "x"]\nclean = ${evil}`)
  },
  'diff.external': (at, evil) => config(at, `[diff]\nexternal = ${evil}`),
  'diff.command': (at, evil) => {
    attributes(at, '* diff=x')
    config(at, `[diff "x"]\ncommand = ${evil}`)
  },
  'diff.textconv': (at, evil) => {
    attributes(at, '* diff=x')
    config(at, `[diff "x"]\ntextconv = ${evil}`)
  },
  'a hook': (at, evil) => {
    writeFileSync(join(at, 'a.txt'), 'one\n')
    addHook(join(at, '.git/hooks'), evil)
  },
  'core.hooksPath': (at, evil) => {
    writeFileSync(join(at, 'a.txt'), 'one\n')
    addHook(join(at, 'tools'), evil)
    config(at, '[core]\nhooksPath = tools')
  },
  'a hook of a submodule': (at, evil) => {
    addSubmodule(at)
    writeFileSync(join(at, 'sub/a.txt'), 'one\n')
    addHook(join(at, 'sub/.git/hooks'), evil)
  },
  'gpg.program': (at, evil) => {
    config(at, `[gpg]\nprogram = ${evil}\n[log]\nshowSignature = true`)
    signCommit(at)
  },
}

/** A commit that says that it is signed. */
function signCommit(at: string): void {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent' }
  const plain = execFileSync('git', ['cat-file', 'commit', 'HEAD'], { cwd: at, env }).toString()
  const signature = 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n'
  const input = plain.replace('\n\n', `\n${signature}\n`)
  const hash = execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin', '--literally'], {
    cwd: at,
    env,
    input,
  })
  git(at, 'update-ref', 'HEAD', hash.toString().trim())
}

/** Git runs the program of these only for other commands, or with a terminal; they are not free either. */
export const WAITING: Readonly<Record<string, Change>> = Object.fromEntries(
  Object.entries({
    'alias.st': '[alias]\nst = !EVIL',
    'core.askPass': '[core]\naskPass = EVIL',
    'core.editor': '[core]\neditor = EVIL',
    'core.gitProxy': '[core]\ngitProxy = EVIL',
    'core.pager': '[core]\npager = EVIL',
    'core.sshCommand': '[core]\nsshCommand = EVIL',
    'core.worktree': '[core]\nworktree = ../..',
    'credential.helper': '[credential "https://example.org"]\nhelper = !EVIL',
    'filter.smudge': '[filter "x"]\nsmudge = EVIL',
    'interactive.diffFilter': '[interactive]\ndiffFilter = EVIL',
    'merge.driver': '[merge "x"]\ndriver = EVIL',
    'pager.status': '[pager]\nstatus = EVIL',
    'remote.promisor': '[remote "origin"]\nurl = .\npromisor = true\nuploadpack = EVIL',
    'remote.vcs': '[remote "origin"]\nvcs = evil',
    'sequence.editor': '[sequence]\neditor = EVIL',
    'submodule.update': '[submodule "sub"]\nupdate = !EVIL',
    'uploadpack.packObjectsHook': '[uploadpack]\npackObjectsHook = EVIL',
    'format.pretty': '[format]\npretty = %h %+G?',
    'extensions.objectFormat': '[core]\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = sha256',
    'a key of a later version': '[hook "x"]\ncommand = EVIL',
  }).map(([name, text]) => [name, (at, evil) => config(at, text.replaceAll('EVIL', evil))]),
)

/** An edit that needs no permission, in the same command line, would change what git runs. */
export const OPEN: Readonly<Record<string, Change>> = {
  'files of a bare repository': unpackBare,
  'a .git file that names a directory of the project': (at) => {
    renameSync(join(at, '.git'), join(at, 'hidden'))
    writeFileSync(join(at, '.git'), 'gitdir: hidden\n')
  },
  'a link to a directory of the project': (at) => {
    renameSync(join(at, '.git'), join(at, 'hidden'))
    symlinkSync('hidden', join(at, '.git'))
  },
  'a link to a file of the project': (at) => {
    renameSync(join(at, '.git/config'), join(at, 'settings'))
    symlinkSync('../settings', join(at, '.git/config'))
  },
  'a common directory of the project': (at) => {
    cpSync(join(at, '.git'), join(at, 'common'), { recursive: true })
    writeFileSync(join(at, '.git/commondir'), '../common\n')
  },
  'a submodule with its files in the project': (at) => {
    addSubmodule(at)
    renameSync(join(at, 'sub/.git'), join(at, 'hidden'))
    writeFileSync(join(at, 'sub/.git'), 'gitdir: ../hidden\n')
  },
}

const link = (at: string, name: string, target: string) => {
  mkdirSync(dirname(join(at, name)), { recursive: true })
  rmSync(join(at, name), { force: true, recursive: true })
  symlinkSync(target, join(at, name))
}

/** A repository next to `at`, with a file `secret.txt`. */
function createPrivate(at: string): string {
  const directory = join(dirname(at), 'private')
  createRepository(directory)
  writeFileSync(join(directory, 'secret.txt'), SECRET)
  git(directory, 'add', '.')
  git(directory, 'commit', '-m', 'second')
  return directory
}

export const SECRET = 'canary\n'

/** Git shows what is outside of the workdir, or in a file that it does not track. */
export const SHOWING: Readonly<Record<string, Change>> = {
  'a .git file that names the repository of another project': (at) => {
    rmSync(join(at, '.git'), { recursive: true })
    writeFileSync(join(at, '.git'), `gitdir: ${createPrivate(at)}/.git\n`)
  },
  'a common directory of another project': (at) =>
    writeFileSync(join(at, '.git/commondir'), `${createPrivate(at)}/.git\n`),
  'the objects of another project': (at) => {
    const other = createPrivate(at)
    writeFileSync(join(at, '.git/objects/info/alternates'), `${other}/.git/objects\n`)
    cpSync(join(other, '.git/refs'), join(at, '.git/refs'), { recursive: true })
  },
  'links to the objects and branches of another project': (at) => {
    const other = createPrivate(at)
    link(at, '.git/objects', join(other, '.git/objects'))
    link(at, '.git/refs', join(other, '.git/refs'))
  },
  'a link in the place of other objects': (at) =>
    link(at, '.git/objects/info/alternates', join(createPrivate(at), 'secret.txt')),
  'a link in the place of a rebase': (at) => {
    const secret = join(createPrivate(at), 'secret.txt')
    link(at, '.git/rebase-merge/done', secret)
    for (const name of ['interactive', 'git-rebase-todo', 'head-name', 'onto'])
      writeFileSync(join(at, '.git/rebase-merge', name), '')
  },
  'a link in the place of packed branches': (at) => link(at, '.git/packed-refs', join(createPrivate(at), 'secret.txt')),
  'a file of ignored commits outside': (at) => config(at, `[blame]\nignoreRevsFile = ${createPrivate(at)}/secret.txt`),
  'a link in the place of ignored commits': (at) => {
    link(at, '.git-blame-ignore-revs', join(createPrivate(at), 'secret.txt'))
    config(at, '[blame]\nignoreRevsFile = .git-blame-ignore-revs')
  },
}

/** As users have them: git only reads there. */
export const USUAL: Readonly<Record<string, Change>> = {
  'a new repository': () => {},
  'a directory without a repository': (at) => rmSync(join(at, '.git'), { recursive: true }),
  'a clone with branches': (at) =>
    config(
      at,
      `[remote "origin"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main
[branch "a \\"b\\" c"] # a comment\n\tremote = .\n; another one\n[user]\n\tname = "A. Ü. Thor"\n\temail = a@example.org
[http "https://example.org/"]\n\textraheader = AUTHORIZATION: basic x\n[core]\n\tfsmonitor = false\n[gui]\n\twmstate = normal`,
    ),
  'hooks of other commands': (at, evil) => {
    mkdirSync(join(at, '.husky/_'), { recursive: true })
    cpSync(evil, join(at, '.husky/_/pre-commit'))
    config(at, '[core]\n\thooksPath = .husky/_')
  },
  'a submodule': (at) => addSubmodule(at),
  'a submodule with its files in those of the project': (at) => {
    addSubmodule(at)
    mkdirSync(join(at, '.git/modules'))
    renameSync(join(at, 'sub/.git'), join(at, '.git/modules/sub'))
    writeFileSync(join(at, 'sub/.git'), 'gitdir: ../.git/modules/sub\n')
    appendFileSync(join(at, '.git/modules/sub/config'), '[core]\n\tworktree = ../../../sub\n')
  },
  'a submodule that is not there': (at) => {
    addSubmodule(at)
    rmSync(join(at, 'sub'), { recursive: true })
  },
  'an index of version 4': (at) => git(at, 'update-index', '--index-version', '4'),
  'a list of ignored commits': (at) => {
    writeFileSync(join(at, '.git-blame-ignore-revs'), '# none\n')
    config(at, '[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n[format]\n\tpretty = %h %s')
  },
  'a submodule as the workdir': (at) => {
    const above = `${at}-above`
    createRepository(above)
    mkdirSync(join(above, '.git/modules'))
    renameSync(join(at, '.git'), join(above, '.git/modules/sub'))
    writeFileSync(join(at, '.git'), `gitdir: ../work-above/.git/modules/sub\n`)
    appendFileSync(join(above, '.git/modules/sub/config'), '[core]\n\tworktree = ../../../../work\n')
  },
  'another work tree': (at) => {
    renameSync(at, `${at}-main`)
    git(`${at}-main`, 'worktree', 'add', at)
  },
}
