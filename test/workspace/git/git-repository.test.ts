import { execFileSync } from 'node:child_process'
import { appendFile, chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { openJail } from '../../../src/files/jail/path-jail.ts'
import { hostLauncher } from '../../../src/sandbox/launch.ts'
import { GitViews } from '../../../src/workspace/git/git-views.ts'
import { findGit, runGit, type GitLimits } from '../../../src/workspace/git/run-git.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import { requireSandbox } from '../../support/require-sandbox.ts'

const signal = AbortSignal.timeout(10 * PATIENCE_MS)
const PAGE = { limit: 100 }
/** A loaded machine takes its time. */
const PATIENT: GitLimits = { timeoutMs: PATIENCE_MS, outputBytes: 64 * 1024 ** 2 }

const GIT_WITHOUT_END = join(import.meta.dirname, 'children/git-without-end.sh')

async function setRepository(
  isolation: 'none' | 'bubblewrap' = 'none',
  limits: GitLimits = PATIENT,
  program: () => string | undefined = findGit,
) {
  const root = await mkdtemp(join(tmpdir(), 'git-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const [dataDir, workdirBase] = [join(root, 'data'), join(root, 'work')]
  const [stateDirectory, workdir] = [join(dataDir, 'conversation'), join(workdirBase, 'workdir')]
  await mkdir(stateDirectory, { recursive: true })
  await mkdir(workdir, { recursive: true })
  const launcher = isolation === 'bubblewrap' ? await requireSandbox({ dataDir, workdirBase }) : hostLauncher
  const rules = { forbidden: [], permitted: [], readable: ['/'] }
  const views = new GitViews({
    git: { launcher, program, limits },
    stateDirectory,
    redact: (text) => text.replaceAll('s3cret-value', '[redacted]'),
    async inJail(each, work) {
      await using jail = await openJail({ workdir, rules, io: (step) => step(), signal: each })
      return await work(jail)
    },
  })
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: workdir,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  git('init', '-q', '-b', 'main')
  const write = (path: string, content: string | Buffer) => writeFile(join(workdir, path), content)
  const commit = (message = 'a commit') => {
    git('add', '-A')
    git('commit', '-q', '-m', message)
    return git('rev-parse', 'HEAD').trim()
  }
  return { root, workdir, stateDirectory, launcher, views, git, write, commit }
}

const problemOf = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error.code : error),
  )

/** Settings that name a program, and where git reads it. `RUN` stands for the program. */
const EXECUTING = [
  ['core.fsmonitor', 'RUN'],
  ['core.pager', 'RUN'],
  ['core.sshCommand', 'RUN'],
  ['core.editor', 'RUN'],
  ['core.askPass', 'RUN'],
  ['core.alternateRefsCommand', 'RUN'],
  ['core.gitProxy', 'RUN'],
  ['pager.diff', 'RUN'],
  ['pager.status', 'RUN'],
  ['diff.external', 'RUN'],
  ['diff.evil.command', 'RUN'],
  ['diff.evil.textconv', 'RUN'],
  ['filter.evil.clean', 'RUN'],
  ['filter.evil.smudge', 'RUN'],
  ['filter.evil.process', 'RUN'],
  ['filter.evil.required', 'true'],
  ['merge.evil.driver', 'RUN'],
  ['gpg.program', 'RUN'],
  ['credential.helper', '!RUN'],
  ['alias.status', '!RUN'],
  ['interactive.diffFilter', 'RUN'],
  ['uploadpack.packObjectsHook', 'RUN'],
  ['remote.origin.url', 'ext::RUN'],
  ['remote.origin.uploadpack', 'RUN'],
  ['remote.origin.promisor', 'true'],
  ['extensions.partialClone', 'origin'],
  ['protocol.ext.allow', 'always'],
  ['trailer.evil.command', 'RUN'],
] as const

/** As `git config` writes them. */
function linesOf([name, value]: readonly [name: string, value: string]): string {
  const [section, key] = [name.slice(0, name.lastIndexOf('.')), name.slice(name.lastIndexOf('.') + 1)]
  const [first, rest] = section.split('.')
  return `[${first}${rest === undefined ? '' : ` "${rest}"`}]\n\t${key} = "${value}"\n`
}

describe.each(['none', 'bubblewrap'] as const)('with the isolation %s', (isolation) => {
  test('no setting, hook or attribute of a repository is executed, and the repository stays byte for byte as it was', async () => {
    const { root, workdir, views, git, write, commit } = await setRepository(isolation)
    const marker = join(workdir, 'marker')
    const program = join(root, 'work', 'workdir', '.git', 'evil')
    await write('.gitattributes', '* filter=evil diff=evil merge=evil\n')
    await write('file.txt', 'one\n')
    await mkdir(join(workdir, 'sub'))
    execFileSync('git', ['init', '-q'], { cwd: join(workdir, 'sub') })
    execFileSync(
      'git',
      ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'a'],
      { cwd: join(workdir, 'sub') },
    )
    git('-c', 'advice.addEmbeddedRepo=false', 'add', 'sub')
    commit()
    await writeFile(program, `#!/bin/sh\necho ran "$0" "$@" >> ${marker}\ncat\n`)
    await chmod(program, 0o755)
    for (const hook of ['post-index-change', 'fsmonitor-watchman', 'reference-transaction', 'post-checkout'])
      await symlink(program, join(workdir, '.git/hooks', hook)).catch(() => {})
    const included = join(workdir, '.git/included')
    await writeFile(included, `[core]\n\tfsmonitor = ${program}\n[diff]\n\texternal = ${program}\n`)
    const settings = [...EXECUTING, ['include.path', included] as const].map(
      ([name, value]) => [name, value.replace('RUN', program)] as const,
    )
    for (const place of ['.git/config', 'sub/.git/config']) {
      await appendFile(join(workdir, place), settings.map(linesOf).join(''))
      const read = git('config', '--file', join(workdir, place), '--list', '--null').split('\0')
      expect(read).toEqual(expect.arrayContaining(settings.map(([name, value]) => `${name.toLowerCase()}\n${value}`)))
    }
    await write('file.txt', 'two\n')
    await write('sub/untracked.txt', 'two\n')
    const before = await snapshotOf(join(workdir, '.git'))

    expect((await views.status(PAGE, signal)).items).toContainEqual({ path: 'file.txt', unstaged: 'modified' })
    const { items } = await views.diff({ base: 'head', ...PAGE }, signal)
    expect(items.find(({ path }) => path === 'file.txt')?.patch).toContain('-one\n+two\n')
    expect((await views.file({ rev: 'HEAD', path: 'file.txt' }, signal)).content.toString()).toBe('one\n')

    expect(await readdir(workdir)).not.toContain('marker')
    expect(await snapshotOf(join(workdir, '.git'))).toEqual(before)
    // The settings are effective where git reads them.
    expect(() => git('status')).toThrow('evil')
    expect(await readFile(marker, 'utf8')).toContain('ran')
  })

  test('status and diff show renames, modes, binary files, deletions and names that are not UTF-8', async () => {
    const { workdir, views, git, write, commit } = await setRepository(isolation)
    await write('old name.txt', 'a line\n'.repeat(20))
    await write('run.sh', 'echo\n')
    await write('binary', Buffer.from([0, 1, 2]))
    await write('gone.txt', 'gone\n')
    await write('secret.txt', 's3cret-value\n')
    await writeFile(Buffer.concat([Buffer.from(`${workdir}/`), Buffer.from([0xff, 0x61])]), 'x\n')
    const head = commit()
    git('mv', 'old name.txt', 'new name.txt')
    await chmod(join(workdir, 'run.sh'), 0o755)
    await write('binary', Buffer.from([0, 1, 3]))
    await rm(join(workdir, 'gone.txt'))
    await rm(join(workdir, 'secret.txt'))
    await symlink('gone.txt', join(workdir, 'secret.txt'))
    await writeFile(Buffer.concat([Buffer.from(`${workdir}/`), Buffer.from([0xff, 0x61])]), 'y\n')
    await write('new.txt', 'new\n')

    const status = await views.status(PAGE, signal)
    expect(status).toMatchObject({ commit: head, branch: 'main', next_page_id: null })
    expect(status.items).toEqual([
      { path: 'binary', unstaged: 'modified' },
      { path: 'gone.txt', unstaged: 'deleted' },
      { path: 'new name.txt', old_path: 'old name.txt', staged: 'renamed' },
      { path: 'run.sh', unstaged: 'modified' },
      { path: 'secret.txt', unstaged: 'type_changed' },
      { path: '\ufffda', unstaged: 'modified' },
      { path: 'new.txt', untracked: true },
    ])

    const { items, base_commit: base } = await views.diff({ base: 'head', ...PAGE }, signal)
    expect(base).toBe(head)
    const byPath = Object.fromEntries(items.map((item) => [item.path, item]))
    expect(byPath['new name.txt']).toMatchObject({ status: 'renamed', old_path: 'old name.txt', added: 0, removed: 0 })
    expect(byPath['new name.txt']?.patch).toContain('rename from old name.txt')
    expect(byPath['run.sh']).toMatchObject({ old_mode: '100644', new_mode: '100755' })
    expect(byPath['binary']).toMatchObject({ binary: true, added: 0, removed: 0 })
    expect(byPath['gone.txt']).toMatchObject({ status: 'deleted', removed: 1 })
    expect(byPath['secret.txt']).toMatchObject({ status: 'type_changed', new_mode: '120000' })
    expect(byPath['secret.txt']?.patch).toContain('-[redacted]')
    expect(byPath['secret.txt']?.patch).toContain('+gone.txt')
    expect(byPath['\ufffda']).toMatchObject({ status: 'modified', added: 1 })
    expect(byPath['\ufffda']?.patch).toBeUndefined()
    expect(Object.keys(byPath)).not.toContain('new.txt')
  })
})

async function snapshotOf(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [file, (await readFile(file)).toString('hex')])),
  )
}

test('a repository without a commit, with a detached HEAD and with a conflict is shown as such', async () => {
  const { views, git, write, commit } = await setRepository()
  expect(await views.status(PAGE, signal)).toEqual({ commit: null, branch: 'main', items: [], next_page_id: null })
  await write('file.txt', 'one\n')
  git('add', '.')
  const first = await views.diff({ base: 'head', ...PAGE }, signal)
  expect(first).toMatchObject({ base_commit: null, items: [{ path: 'file.txt', status: 'added', added: 1 }] })
  const base = commit()
  git('checkout', '-q', '-b', 'side')
  await write('file.txt', 'two\n')
  commit()
  expect(await views.diff({ base: 'merge_base', ...PAGE }, signal)).toMatchObject({ base_commit: base })
  git('checkout', '-q', '--detach', 'main')
  await write('file.txt', 'three\n')
  const detached = commit()
  expect(await views.status(PAGE, signal)).toMatchObject({ commit: detached, branch: null })
  expect(() => git('merge', 'side')).toThrow()
  expect((await views.status(PAGE, signal)).items).toEqual([{ path: 'file.txt', conflict: true }])
  const { items } = await views.diff({ base: 'head', ...PAGE }, signal)
  expect(items).toMatchObject([{ path: 'file.txt', status: 'modified' }])
  expect(items[0]?.patch).toContain('+<<<<<<< HEAD')
})

test('pages of a diff have each file once, however large the patches are', async () => {
  const { views, write, commit } = await setRepository()
  const line = `${'x'.repeat(99)}\n`
  for (const name of ['a', 'b', 'c', 'd']) await write(name, 'one\n')
  commit()
  await write('a', line.repeat(60_000))
  await write('b', line.repeat(60_000))
  for (const name of ['c', 'd']) await write(name, 'two\n')
  const seen: string[] = []
  let pageId: string | undefined
  do {
    const page = await views.diff({ base: 'head', limit: 3, page_id: pageId }, signal)
    seen.push(...page.items.map(({ path, patch, patch_truncated: isCut }) => `${path} ${patch !== undefined} ${isCut}`))
    pageId = page.next_page_id ?? undefined
  } while (pageId !== undefined)
  expect(seen).toEqual(['a true true', 'b true true', 'c true undefined', 'd true undefined'])
  const beyond = await views.diff({ base: 'head', limit: 3, page_id: '999' }, signal)
  expect([beyond.items, beyond.next_page_id]).toEqual([[], null])
})

test('content that looks like the beginning of a patch begins none', async () => {
  const { views, write, commit } = await setRepository()
  for (const name of ['a', 'b']) await write(name, `${name}\n`)
  commit()
  await write('a', 'a\rdiff --git a/b b/b\r* Unmerged path b\n')
  await write('b', 'changed\n')
  const { items } = await views.diff({ base: 'head', ...PAGE }, signal)
  expect(items.map(({ patch }) => patch?.match(/^\+[^+][^\n]*\n/m)?.[0])).toEqual([
    '+a\rdiff --git a/b b/b\r* Unmerged path b\n',
    '+changed\n',
  ])
})

test('a revision is a name of a commit and never an option or a part of the index', async () => {
  const { root, views, write, commit } = await setRepository()
  await write('file.txt', 'one\n')
  const head = commit()
  const { content } = await views.file({ rev: head.slice(0, 12), path: 'file.txt' }, signal)
  expect(content.toString()).toBe('one\n')
  for (const rev of [
    '--all',
    '--help',
    '-h',
    `--output=${root}/written`,
    ':file.txt',
    'HEAD:file.txt',
    'HEAD..HEAD',
    'nothing',
    '^HEAD',
  ])
    expect(await problemOf(views.file({ rev, path: 'file.txt' }, signal)), rev).toBe('revision_not_found')
  for (const path of ['--all', '*', ':(glob)*', 'nothing', '../outside'])
    expect(await problemOf(views.file({ rev: 'HEAD', path }, signal)), path).toMatch(/^(file_not_found|git_failed)$/)
  expect(await readdir(root)).not.toContain('written')
})

test('a repository with parts outside of the workdir is refused', async () => {
  const { root, workdir, views, write, commit } = await setRepository()
  await write('file.txt', 'one\n')
  commit()
  const at = (name: string) => join(workdir, '.git', name)
  await writeFile(at('objects/info/alternates'), `${root}\n`)
  expect(await problemOf(views.status(PAGE, signal))).toBe('not_a_repository')
  await rm(at('objects/info/alternates'))
  await writeFile(at('commondir'), `${root}\n`)
  expect(await problemOf(views.status(PAGE, signal))).toBe('not_a_repository')
  await rm(at('commondir'))
  expect(await problemOf(views.status(PAGE, signal))).toBeUndefined()
  execFileSync('mv', [at('refs'), join(root, 'refs')])
  await symlink(join(root, 'refs'), at('refs'))
  expect(await problemOf(views.status(PAGE, signal))).toBe('not_a_repository')
  execFileSync('mv', [join(workdir, '.git'), join(root, 'elsewhere')])
  expect(await problemOf(views.status(PAGE, signal))).toBe('not_a_repository')
  await write('.git', `gitdir: ${join(root, 'elsewhere')}\n`)
  expect(await problemOf(views.status(PAGE, signal))).toBe('not_a_repository')
})

test('in a sandbox git can write neither to the workdir nor to its settings, and has no network', async () => {
  const { root, workdir, stateDirectory, launcher } = await setRepository('bubblewrap')
  const gitDir = join(stateDirectory, 'git', 'view')
  await mkdir(gitDir, { recursive: true })
  const access = { launcher, program: findGit, limits: PATIENT }
  const call = { workdir, gitDir, privateDir: join(stateDirectory, 'git'), signal }
  const run = async (command: string) => {
    const alias = `alias.run=!${command}`
    return (await runGit(access, ['-c', alias, 'run'], call)).stdout.toString().trim()
  }
  await expect(run(`echo > ${workdir}/written`)).rejects.toThrow('Read-only file system')
  await expect(run(`echo > ${gitDir}/written`)).rejects.toThrow('Read-only file system')
  expect(await run('cat /proc/net/dev | tail -n +3 | cut -d: -f1')).toBe('lo')
  expect(await run(`ls ${root}/data/conversation`)).toBe('git')
})

test('however many requests there are, eight gits run at the same time, and those that end make room', async () => {
  const enough = new AbortController()
  let begun = 0
  const count = () => {
    begun += 1
    return GIT_WITHOUT_END
  }
  const access = { launcher: hostLauncher, program: count, limits: PATIENT }
  const call = { workdir: tmpdir(), gitDir: tmpdir(), privateDir: tmpdir(), signal: enough.signal }
  const runs = Array.from({ length: 40 }, () => runGit(access, [], call))
  await expect.poll(() => begun).toBe(8)
  enough.abort(new Error('enough'))
  expect((await Promise.allSettled(runs)).every(({ status }) => status === 'rejected')).toBe(true)
  expect(begun).toBe(8)
  const { stdout } = await runGit({ ...access, program: findGit }, ['--version'], { ...call, signal })
  expect(stdout.toString()).toContain('git version')
})

test('git is ended when it takes too long or writes too much', async () => {
  const slow = await setRepository('none', { timeoutMs: 1, outputBytes: 1024 }, () => GIT_WITHOUT_END)
  expect(await problemOf(slow.views.status(PAGE, signal))).toBe('git_failed')
  const { views, write } = await setRepository('none', { timeoutMs: PATIENCE_MS, outputBytes: 2048 })
  for (let i = 0; i < 100; i++) await write(`a file with a long name ${i}`, '')
  expect(await problemOf(views.status(PAGE, signal))).toBe('git_failed')
})

test('a failure of git does not show where the server keeps its data', async () => {
  const { root, views, write, commit } = await setRepository()
  await write('file.txt', 'one\n')
  commit()
  await write('.git/HEAD', 'neither a commit nor a branch\n')
  const failure = await views.status(PAGE, signal).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'git_failed', message: expect.stringContaining('not a git repository') })
  expect(String(failure)).not.toContain(join(root, 'data'))
})
