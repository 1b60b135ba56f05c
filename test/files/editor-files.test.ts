import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readFile,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { MAX_LISTED, MAX_LISTED_CHARS } from '../../src/files/directory-listing.ts'
import { FileRefusal } from '../../src/files/jail/file-refusal.ts'
import { createEditorFiles, createFileViews } from '../../src/files/editor-files.ts'
import type { EditorFiles, FoundEntry, FoundFile, Missing } from '../../src/files/editor-files.ts'
import { UnfinishedFiles } from '../../src/files/jail/unfinished-files.ts'
import { makeDirectory } from './editor-fixture.ts'

const isRoot = process.getuid?.() === 0
const MAX = 1000

/** `home` is free to use; `server` is not, but for `server/work` and, to read, `server/outputs`. */
async function setUp() {
  const root = await makeDirectory()
  const [home, server] = [join(root, 'home'), join(root, 'server')]
  for (const each of [home, server, join(server, 'work'), join(server, 'outputs')]) await mkdir(each)
  await writeFile(join(server, 'key'), 'the key')
  await writeFile(join(server, 'outputs', 'long'), 'long')
  const files = createEditorFiles(
    () => ({
      forbidden: [server, '/proc'],
      permitted: [join(server, 'work')],
      readable: [join(server, 'outputs')],
    }),
    new UnfinishedFiles(join(root, 'unfinished')),
  )
  return { root, home, server, files }
}

async function lookAs<K extends FoundEntry['kind']>(
  files: EditorFiles,
  path: string,
  kind: K,
): Promise<Extract<FoundEntry, { kind: K }>> {
  const found = await files.look(path, MAX)
  expect(found.kind).toBe(kind)
  return found as Extract<FoundEntry, { kind: K }>
}

const refusal = (message: RegExp) =>
  expect.objectContaining({ name: 'FileRefusal', message: expect.stringMatching(message) })
const forbidden = expect.objectContaining({ isForbidden: true })

describe('the entry at a path is', () => {
  test('a file that has more than its size says, such as one that grows meanwhile, is not read beyond the limit', async () => {
    const files = createFileViews(() => ({ forbidden: [] }))
    // The kernel says that it has no bytes.
    const maps = '/proc/self/smaps'
    expect((await stat(maps)).size).toBe(0)
    expect((await readFile(maps)).length).toBeGreaterThan(MAX)
    expect(await files.look(maps, MAX)).toMatchObject({ kind: 'large', size: MAX + 1 })
    const whole = await files.look('/proc/version', MAX)
    expect(whole.kind === 'file' && whole.bytes).toEqual(await readFile('/proc/version'))
  })

  test('a file, with its bytes', async () => {
    const { home, files } = await setUp()
    await writeFile(join(home, 'a'), 'text')
    expect(await files.look(join(home, 'a'), MAX)).toMatchObject({
      kind: 'file',
      path: join(home, 'a'),
      bytes: Buffer.from('text'),
    })
  })

  test('a file too large to be read', async () => {
    const { home, files } = await setUp()
    await writeFile(join(home, 'a'), Buffer.alloc(MAX + 1))
    expect(await files.look(join(home, 'a'), MAX)).toEqual({ kind: 'large', path: join(home, 'a'), size: MAX + 1 })
  })

  test('the target of a link, over any number of links', async () => {
    const { home, files } = await setUp()
    await mkdir(join(home, 'real'))
    await writeFile(join(home, 'real', 'a'), 'text')
    await symlink('real', join(home, 'one'))
    await symlink('one/a', join(home, 'two'))
    expect(await files.look(join(home, 'two'), MAX)).toMatchObject({ kind: 'file', path: join(home, 'real', 'a') })
    expect(await files.look(join(home, 'one'), MAX)).toEqual({ kind: 'directory', path: join(home, 'real') })
  })

  test('nothing, where a file could be made', async () => {
    const { home, files } = await setUp()
    await symlink('.', join(home, 'here'))
    expect(await files.look(join(home, 'here', 'x', 'y', 'z'), MAX)).toEqual({
      kind: 'missing',
      path: join(home, 'x', 'y', 'z'),
    })
  })

  test('a pipe, a socket or a device, which are not opened', async () => {
    const { home, files } = await setUp()
    await promisify(execFile)('mkfifo', [join(home, 'pipe')])
    const socket = createServer().listen(join(home, 'socket'))
    await once(socket, 'listening')
    expect(await files.look(join(home, 'pipe'), MAX)).toMatchObject({ kind: 'special', what: 'a named pipe' })
    expect(await files.look(join(home, 'socket'), MAX)).toMatchObject({ kind: 'special', what: 'a socket' })
    expect(await files.look('/dev/zero', MAX)).toMatchObject({ kind: 'special', what: 'a device' })
    socket.close()
  })
})

test.each([
  ['a link that leads nowhere', 'nowhere', /symbolic link to gone, which does not exist/],
  ['links that lead to each other', 'loop', /too many symbolic links/],
  ['a file on the way', 'file/x', /is a file and not a directory/],
  ['a name of more than 255 bytes', 'x'.repeat(300), /too long/],
])('%s is refused', async (_, name, message) => {
  const { home, files } = await setUp()
  await symlink('gone', join(home, 'nowhere'))
  await symlink('loop', join(home, 'loop'))
  await writeFile(join(home, 'file'), '')
  await expect(files.look(join(home, name), MAX)).rejects.toEqual(refusal(message))
})

describe('a new file', () => {
  test('is created with its parent directories and the usual permissions', async () => {
    const { home, files } = await setUp()
    const path = join(home, 'x', 'y', 'z')
    await files.create(await lookAs(files, path, 'missing'), Buffer.from('new'))
    expect(await readFile(path, 'utf8')).toBe('new')
    await writeFile(join(home, 'plain'), '')
    expect((await stat(path)).mode).toBe((await stat(join(home, 'plain'))).mode)
    expect(await readdir(join(home, 'x', 'y'))).toEqual(['z'])
  })

  test('never replaces one that was created meanwhile', async () => {
    const { home, files } = await setUp()
    const missing = await lookAs(files, join(home, 'a'), 'missing')
    await writeFile(join(home, 'a'), 'first')
    await expect(files.create(missing, Buffer.from('second'))).rejects.toEqual(refusal(/already exists/))
    expect(await readFile(join(home, 'a'), 'utf8')).toBe('first')
    expect(await readdir(home)).toEqual(['a'])
  })

  test('is not created on a full disk, and leaves nothing behind', async () => {
    const { files } = await setUp()
    const missing: Missing = { kind: 'missing', path: '/sys/no-such-file' }
    await expect(files.create(missing, Buffer.from('x'))).rejects.toBeInstanceOf(FileRefusal)
  })
})

describe('a file is replaced', () => {
  async function withFile(content = 'old') {
    const all = await setUp()
    const path = join(all.home, 'a')
    await writeFile(path, content)
    return { ...all, path, find: () => lookAs(all.files, path, 'file') }
  }

  test('with its mode', async () => {
    const { path, find, files } = await withFile()
    await chmod(path, 0o4751)
    await files.replace(await find(), Buffer.from('new'))
    expect((await stat(path)).mode & 0o7777).toBe(0o4751)
  })

  test('with its owner', async () => {
    const { path, find, files } = await withFile()
    // Only root may give a file away; for anyone else it stays what it was.
    const [uid, gid] = isRoot ? [1234, 4321] : [process.getuid!(), process.getgid!()]
    await chown(path, uid, gid)
    await chmod(path, 0o4751)
    await files.replace(await find(), Buffer.from('new'))
    expect(await stat(path)).toMatchObject({ uid, gid, mode: 0o104751 })
  })

  test('where a link leads, and the link stays', async () => {
    const { home, path, files } = await withFile()
    await symlink('a', join(home, 'l'))
    await files.replace(await lookAs(files, join(home, 'l'), 'file'), Buffer.from('new'))
    expect(await readlink(join(home, 'l'))).toBe('a')
    expect(await readFile(path, 'utf8')).toBe('new')
  })

  test('atomic for a reader: it sees the old one or the new one, never a part', async () => {
    const size = 128 * 1024
    const { path, files } = await withFile('a'.repeat(size))
    const done = new AbortController()
    const seen = new Set<string>()
    const reading = (async () => {
      while (!done.signal.aborted) {
        const text = await readFile(path, 'latin1')
        expect(text.length).toBe(size)
        seen.add(text[0]!)
        expect(text).toBe(text[0]!.repeat(size))
      }
    })()
    for (const letter of 'bcdefghijklmnopqrstuvwxyz') {
      const found = (await files.look(path, size)) as FoundFile
      await files.replace(found, Buffer.from(letter.repeat(size)))
    }
    done.abort()
    await reading
    expect(seen.size).toBeGreaterThan(2)
    expect(await readFile(path, 'latin1')).toBe('z'.repeat(size))
  })

  test.each([
    ['was written by something else', async (path: string) => await writeFile(path, 'theirs')],
    [
      'was written and has the same size and time',
      async (path: string) => (await rm(path), await writeFile(path, 'new'), await utimes(path, 1, 1)),
    ],
    ['was removed', async (path: string) => await rm(path)],
    ['became a link', async (path: string) => (await rm(path), await symlink('other', path))],
  ])('unless it %s after it was read', async (_, happen) => {
    const { path, home, find, files } = await withFile()
    await utimes(path, 1, 1)
    const found = await find()
    await happen(path)
    const before = await lstat(path).catch(() => undefined)
    await expect(files.replace(found, Buffer.from('mine'))).rejects.toBeInstanceOf(FileRefusal)
    await expect(files.remove(found)).rejects.toBeInstanceOf(FileRefusal)
    expect((await lstat(path).catch(() => undefined))?.ino).toBe(before?.ino)
    expect((await readdir(home)).filter((name) => name !== 'a')).toEqual([])
  })

  test('except if it is not writable, even if its directory is', async () => {
    const { home, path, find, files } = await withFile()
    await chmod(path, 0o444)
    await chmod(home, 0o777)
    const found = await find()
    // Root may write anything, so it is somebody else for a moment.
    if (isRoot) process.seteuid!(65_534)
    try {
      await expect(files.replace(found, Buffer.from('new'))).rejects.toEqual(refusal(/Permission denied/))
    } finally {
      if (isRoot) process.seteuid!(0)
    }
  })

  test('unless it is removed: then the directory is empty', async () => {
    const { home, find, files } = await withFile()
    await files.remove(await find())
    expect(await readdir(home)).toEqual([])
  })
})

describe('the server’s own files', () => {
  test.each([
    ['by their path', async (): Promise<string> => 'server/key'],
    ['over dots', async () => 'home/../server/key'],
    ['over a link', async (root: string) => (await symlink('../server/key', join(root, 'home/l')), 'home/l')],
    [
      'over a link to the directory',
      async (root: string) => (await symlink(join(root, 'server'), join(root, 'home/d')), 'home/d/key'),
    ],
    [
      'over a link in an open directory of theirs',
      async (root: string) => (await symlink('../key', join(root, 'server/work/l')), 'server/work/l'),
    ],
    ['over /proc', async (root: string) => `/proc/self/root/${root}/server/key`],
    ['where nothing is yet', async () => 'server/new'],
    ['the directory itself', async () => 'server'],
  ])('are not seen: %s', async (_, make) => {
    const { root, files } = await setUp()
    const path = await make(root)
    await expect(files.look(path.startsWith('/') ? path : join(root, path), MAX)).rejects.toEqual(forbidden)
    await expect(files.list(join(root, 'server'))).rejects.toEqual(forbidden)
  })

  test('are not made, not even the directories on the way', async () => {
    const { server, files } = await setUp()
    await expect(files.create({ kind: 'missing', path: join(server, 'x', 'y') }, Buffer.from(''))).rejects.toEqual(
      forbidden,
    )
    expect(await readdir(server)).not.toContain('x')
  })

  test('are not changed through a name that leads there since the file was read', async () => {
    const { home, server, files } = await setUp()
    await mkdir(join(home, 'd'))
    await writeFile(join(home, 'd', 'key'), 'harmless')
    const found = await lookAs(files, join(home, 'd', 'key'), 'file')
    const missing = await lookAs(files, join(home, 'd', 'new'), 'missing')
    await rename(join(home, 'd'), join(home, 'moved'))
    await symlink(server, join(home, 'd'))
    for (const change of [
      () => files.replace(found, Buffer.from('x')),
      () => files.remove(found),
      () => files.create(missing, Buffer.from('x')),
    ]) {
      await expect(change()).rejects.toBeInstanceOf(FileRefusal)
    }
    expect(await readFile(join(server, 'key'), 'utf8')).toBe('the key')
    expect((await readdir(server)).sort()).toEqual(['key', 'outputs', 'work'])
  })

  test('are never shown, however often a name is swapped while it is looked at', async () => {
    const { home, server, files } = await setUp()
    const path = join(home, 'flip')
    await writeFile(join(home, 'harmless'), 'harmless')
    await symlink('harmless', path)
    const done = new AbortController()
    const swapping = (async () => {
      for (let turn = 0; !done.signal.aborted; turn++) {
        await symlink(turn % 2 ? 'harmless' : join(server, 'key'), join(home, 'next'))
        await rename(join(home, 'next'), path)
      }
    })()
    const seen = new Set<string>()
    for (let i = 0; i < 400; i++) {
      const found = await files.look(path, MAX).catch((error: unknown) => error as FileRefusal)
      seen.add('isForbidden' in found ? 'refused' : found.kind === 'file' ? found.bytes.toString() : found.kind)
    }
    done.abort()
    await swapping
    expect([...seen].sort()).toEqual(['harmless', 'refused'])
  })

  test('appear in listings only by the name of their directory', async () => {
    const { root, files } = await setUp()
    expect((await files.list(root)).entries).toEqual(['home/', 'server/'])
  })

  test('except permitted directories, which are readable, and writable only if allowed', async () => {
    const { server, files } = await setUp()
    await files.create(await lookAs(files, join(server, 'work', 'a'), 'missing'), Buffer.from('a'))
    const output = await lookAs(files, join(server, 'outputs', 'long'), 'file')
    await expect(files.replace(output, Buffer.from('x'))).rejects.toEqual(forbidden)
    await expect(files.remove(output)).rejects.toEqual(forbidden)
    await expect(
      files.create({ kind: 'missing', path: join(server, 'outputs', 'new') }, Buffer.from('')),
    ).rejects.toEqual(forbidden)
    expect((await files.list(join(server, 'outputs'))).entries).toEqual(['long'])
  })

  test('the kernel’s information about the server’s process is among them', async () => {
    const { files } = await setUp()
    for (const path of ['/proc/self/environ', '/proc/self/mem', `/proc/${process.pid}/maps`, '/dev/fd/../environ']) {
      await expect(files.look(path, MAX)).rejects.toEqual(forbidden)
    }
  })
})

describe('a listing', () => {
  test('has two levels, in order, without hidden entries; links are not followed', async () => {
    const { home, files } = await setUp()
    for (const name of ['b/c/deeper', 'a', '.hidden']) await mkdir(join(home, name), { recursive: true })
    for (const name of ['z', 'b/.env', 'b/x', '.rc']) await writeFile(join(home, name), '')
    await symlink('b', join(home, 'link'))
    expect(await files.list(home)).toEqual({
      entries: ['a/', 'b/', 'b/c/', 'b/x', 'link', 'z'],
      hidden: 2,
      isCut: false,
    })
  })

  test('is cut when it is too long, and lists the whole first level before the second', async () => {
    const { home, files } = await setUp()
    await mkdir(join(home, 'many'))
    for (let i = 0; i < MAX_LISTED + 5; i++) await link(join(home, '../server/key'), join(home, 'many', `f${i}`))
    await writeFile(join(home, 'z'), '')
    const { entries, isCut } = await files.list(home)
    expect(entries).toHaveLength(MAX_LISTED)
    expect(isCut).toBe(true)
    expect(entries.at(-1)).toBe('z')
  })

  test('is cut when its names are too long together', async () => {
    const { home, files } = await setUp()
    const inner = `d${'d'.repeat(200)}`
    await mkdir(join(home, inner))
    const names = Array.from({ length: 400 }, (_, at) => String(at).padStart(250, 'n'))
    for (const name of names) await link(join(home, '../server/key'), join(home, inner, name))
    await writeFile(join(home, 'z'), '')
    const { entries, isCut } = await files.list(home)
    expect(isCut).toBe(true)
    expect(entries).toEqual(expect.arrayContaining([`${inner}/`, 'z']))
    const shown = entries.map((entry) => `${home}/${entry}\n`).join('').length
    expect(shown).toBeLessThanOrEqual(MAX_LISTED_CHARS)
    expect(shown).toBeGreaterThan(MAX_LISTED_CHARS - 600)
  })
})
