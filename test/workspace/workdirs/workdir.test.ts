import { once } from 'node:events'
import fs, { mkdir, readdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { prepareWorkdir } from '../../../src/workspace/workdirs/workdir.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { tempDirectory } from '../../events/fixtures.ts'

const id = uuid7()

/** A data directory with the default base in it, and a place beside it. */
async function setUp({ roots = [] as readonly string[] } = {}) {
  const directory = await tempDirectory()
  const home = await realpath(directory.path)
  const data = join(home, 'data')
  const base = join(data, 'work')
  await mkdir(join(data, 'sessions'), { recursive: true })
  await mkdir(join(home, 'projects'))
  const rules = { base, roots: roots.map((root) => join(home, root)), forbidden: [data], unholdable: [] as string[] }
  return {
    home,
    data,
    base,
    rules,
    prepare: (wanted?: string) => prepareWorkdir(wanted, id, rules),
    [Symbol.asyncDispose]: directory[Symbol.asyncDispose],
  }
}

const refused = { code: 'unsafe_path', message: expect.stringMatching(/^The workdir is refused: .*\.$/) }

test('by default it is a new directory under the base', async () => {
  await using place = await setUp()
  expect(await place.prepare()).toBe(join(place.base, id))
  expect(await readdir(place.base)).toEqual([id])
})

test('one that another conversation makes while it is looked for is used', async () => {
  await using place = await setUp()
  const wanted = join(place.home, 'projects/new')
  const { realpath: look } = fs
  fs.realpath = (async (path: string) => {
    const found = look(path)
    if (path !== wanted) return await found
    await found.catch(() => {}) // it is not there
    await mkdir(wanted, { recursive: true })
    return await found
  }) as typeof fs.realpath
  syncBuiltinESMExports()
  onTestFinished(() => {
    fs.realpath = look
    syncBuiltinESMExports()
  })
  expect(await place.prepare(wanted)).toBe(wanted)
})

test.runIf(process.platform === 'linux')('a directory that only another process sees is refused at once', async () => {
  await using place = await setUp()
  const seen = join(place.home, 'projects')
  const script = 'mount -t tmpfs none "$0" && mkdir "$0/inside" && cd "$0" && echo "$$" && exec sleep infinity'
  const other = execa({ reject: false })`unshare --user --map-root-user --mount sh -c ${script} ${seen}`
  onTestFinished(async () => {
    other.kill('SIGKILL')
    await other
  })
  const [pid] = (await once(other.stdout, 'data')) as [Buffer]
  await expect(place.prepare(`/proc/${String(pid).trim()}/cwd/inside`)).rejects.toMatchObject(refused)
})

test.each(['/proc', '/proc/self/fd', '/sys/fs/cgroup', '/dev/shm/x', '/run/x', '/dev'])(
  '%s is refused: it belongs to the kernel or other services',
  async (wanted) => {
    await using place = await setUp()
    await expect(place.prepare(wanted)).rejects.toMatchObject(refused)
  },
)

test('the base itself is refused where workdirs are kept from each other', async () => {
  await using place = await setUp()
  const { base } = place.rules
  await mkdir(base)
  for (const wanted of ['.', base, 'a/..', `${base}/`])
    await expect(prepareWorkdir(wanted, id, { ...place.rules, unholdable: [base] })).rejects.toMatchObject(refused)
})

describe('a relative one', () => {
  test.each([
    ['project', 'project'],
    ['a/b/c', 'a/b/c'],
    ['a/../b', 'b'],
    ['./project/', 'project'],
    ['a..b', 'a..b'],
    ['ünïcode and spaces', 'ünïcode and spaces'],
    ['.', '.'],
  ])('%j is under the base, and is created', async (wanted, expected) => {
    await using place = await setUp()
    expect(await place.prepare(wanted)).toBe(join(place.base, expected))
  })

  test.each(['..', '../work-of-others', '../../projects', 'a/../../x', '../sessions', `a/${'../'.repeat(30)}etc`])(
    '%j does not leave the base',
    async (wanted) => {
      await using place = await setUp()
      await expect(place.prepare(wanted)).rejects.toMatchObject(refused)
    },
  )

  test('does not leave the base over a link, whether it leads to something or to nothing', async () => {
    await using place = await setUp()
    await mkdir(place.base)
    await symlink(join(place.home, 'projects'), join(place.base, 'out'))
    await symlink(join(place.home, 'nothing'), join(place.base, 'dangling'))
    await symlink('loop', join(place.base, 'loop'))
    for (const wanted of ['out', 'out/deep/er', 'dangling', 'dangling/x', 'loop', 'loop/x'])
      await expect(place.prepare(wanted), wanted).rejects.toMatchObject(refused)
    expect(await readdir(join(place.home, 'projects'))).toEqual([])
    expect(await readdir(place.home)).not.toContain('nothing')
  })

  test('over a link that stays inside is refused: it may lead to the workdir of another conversation', async () => {
    await using place = await setUp()
    await mkdir(join(place.base, 'victim'), { recursive: true })
    await mkdir(join(place.base, 'outer'))
    await symlink(join(place.base, 'victim'), join(place.base, 'outer/inner'))
    for (const wanted of ['outer/inner', 'outer/inner/x', join(place.base, 'outer/inner')])
      await expect(place.prepare(wanted), wanted).rejects.toMatchObject(refused)
    expect(await readdir(join(place.base, 'victim'))).toEqual([])
  })

  test('is under a base that the operator reaches over a link', async () => {
    await using place = await setUp()
    await mkdir(place.base)
    const alias = join(place.home, 'alias')
    await symlink(place.base, alias)
    const rules = { ...place.rules, base: alias }
    expect(await prepareWorkdir('x', id, rules)).toBe(join(place.base, 'x'))
    expect(await prepareWorkdir(join(alias, 'y'), id, rules)).toBe(join(place.base, 'y'))
  })

  test('is not bound to the roots, which are for absolute ones', async () => {
    await using place = await setUp({ roots: ['projects'] })
    expect(await place.prepare('x')).toBe(join(place.base, 'x'))
  })
})

describe('an absolute one', () => {
  test('may be anywhere without roots', async () => {
    await using place = await setUp()
    expect(await place.prepare(join(place.home, 'projects/new'))).toBe(join(place.home, 'projects/new'))
  })

  test('is inside one of the roots, if any are set; a root itself is allowed, a path with its name as a prefix is not', async () => {
    await using place = await setUp({ roots: ['projects', 'more'] })
    for (const fine of ['projects', 'projects/a/b', 'more/x'])
      expect(await place.prepare(join(place.home, fine))).toBe(join(place.home, fine))
    for (const wrong of ['elsewhere', 'projects-of-others', 'projects/../elsewhere', ''])
      await expect(place.prepare(join(place.home, wrong) || '/'), wrong).rejects.toMatchObject(refused)
    await expect(place.prepare('/')).rejects.toMatchObject(refused)
  })

  test('does not leave the roots over a link', async () => {
    await using place = await setUp({ roots: ['projects'] })
    await symlink('/', join(place.home, 'projects/root'))
    await expect(place.prepare(join(place.home, 'projects/root/tmp'))).rejects.toMatchObject(refused)
  })

  test.each([[[]], [['projects']]])('with a link in its path is refused, with the roots %j', async (roots) => {
    await using place = await setUp({ roots })
    await mkdir(join(place.home, 'projects/victim'))
    await mkdir(join(place.base, 'victim'), { recursive: true })
    await symlink('victim', join(place.home, 'projects/inner'))
    await symlink(join(place.base, 'victim'), join(place.home, 'projects/into-base'))
    for (const wanted of ['projects/inner', 'projects/inner/x', 'projects/into-base'])
      await expect(place.prepare(join(place.home, wanted)), wanted).rejects.toMatchObject(refused)
  })

  test('in the base counts as under the base', async () => {
    await using place = await setUp({ roots: ['data/work'] })
    expect(await place.prepare(join(place.base, 'x'))).toBe(join(place.base, 'x'))
  })

  test('is never among the server’s own files, wherever links lead', async () => {
    await using place = await setUp()
    await symlink(place.data, join(place.home, 'projects/alias'))
    for (const wanted of [
      'data',
      'data/sessions',
      'data/sessions/x',
      'data/deleted',
      'data/new',
      'projects/alias/sessions',
      'projects/alias',
    ]) {
      await expect(place.prepare(join(place.home, wanted)), wanted).rejects.toMatchObject(refused)
    }
    expect(await readdir(join(place.data, 'sessions'))).toEqual([])
  })
})

test.each(['a\0b', '\0', '/tmp/\0'])('%j holds a NUL and is refused', async (wanted) => {
  await using place = await setUp()
  await expect(place.prepare(wanted)).rejects.toMatchObject(refused)
})

test('a path that cannot be a directory is refused, without repeating it', async () => {
  await using place = await setUp()
  await mkdir(place.base)
  await writeFile(join(place.base, 'file-named-hunter2'), '')
  const longer = 'n'.repeat(300)
  for (const wanted of ['file-named-hunter2', 'file-named-hunter2/below', longer]) {
    const error = await place.prepare(wanted).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status: 400, message: expect.not.stringMatching(/hunter2|nnn/) })
  }
})
