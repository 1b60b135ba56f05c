import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { parseJailPath } from '../../../src/files/jail/jail-path.ts'
import { listFiles } from '../../../src/files/trees/list-files.ts'
import type { Jail } from '../../../src/files/jail/path-jail.ts'
import { makeDirectoriesIn, openJail } from '../../../src/files/jail/path-jail.ts'
import { openFile } from '../../../src/files/jail/read-file.ts'
import { remove } from '../../../src/files/jail/remove-file.ts'
import { searchFiles } from '../../../src/files/search/search-files.ts'
import { UnfinishedFiles } from '../../../src/files/jail/unfinished-files.ts'
import { ANY_FILE, publish, stage, touch } from '../../../src/files/write-file.ts'
import { CANARY, outcomeOf, setJail } from '../jail-fixture.ts'
import { effort, PATIENCE_MS } from '../../support/patience.ts'

const path = parseJailPath

async function read(jail: Jail, name: string): Promise<string> {
  await using file = await openFile(jail, path(name))
  return await text(file.content(0, Number(file.stats.size)))
}

async function write(jail: Jail, name: string, content = 'written'): Promise<void> {
  const { names } = path(name)
  await using staged = await stage(jail, names.slice(0, -1), {
    content: (async function* () {
      yield Buffer.from(content)
    })(),
    withHash: false,
    unfinished: new UnfinishedFiles(`${jail.root.path}.unfinished`),
  })
  await publish(jail, staged, names, ANY_FILE)
}

async function list(jail: Jail, name = '', recursive = true): Promise<string[]> {
  const { items } = await listFiles(jail, path(name), { recursive, limit: 1000 })
  return items.map((item) => `${item.path} ${item.type}`)
}

const removeAll = (jail: Jail, name: string) =>
  remove(jail, path(name).names, { recursive: true, precondition: () => {} })

async function makeDirectory(jail: Jail, name: string): Promise<void> {
  const { place } = await makeDirectoriesIn(jail, path(name).names)
  await place.handle.close()
}

/** Everything that can be done with a path. */
const ACTIONS: Readonly<Record<string, (jail: Jail, name: string) => Promise<unknown>>> = {
  read,
  write,
  touch: (jail, name) => touch(jail, path(name).names, ANY_FILE),
  list,
  remove: removeAll,
  'make a directory': makeDirectory,
}

describe('a link', () => {
  test.each(['/etc', '../outside', '.', 'inner', '..', '/proc/self/root'])('to %s leads nowhere', async (target) => {
    await using bench = await setJail()
    await mkdir(bench.inside('inner'))
    await symlink(target, bench.inside('link'))
    for (const [action, carryOut] of Object.entries(ACTIONS))
      expect(await outcomeOf(() => carryOut(bench.jail, 'link/canary')), action).toBe('unsafe_path')
    expect(await readFile(join(bench.outside, 'canary'), 'utf8')).toBe(CANARY)
    expect(await readdir(bench.outside)).toEqual(['canary'])
  })

  test.each(['../outside/canary', '../outside/new', '/etc/passwd'])(
    'to the file %s is not followed',
    async (target) => {
      await using bench = await setJail()
      await symlink(target, bench.inside('link'))
      for (const action of ['read', 'write', 'touch', 'list', 'make a directory'])
        expect(await outcomeOf(() => ACTIONS[action]!(bench.jail, 'link')), action).toBe('unsafe_path')
      expect(await readdir(bench.outside)).toEqual(['canary'])
      expect(await readFile(join(bench.outside, 'canary'), 'utf8')).toBe(CANARY)
    },
  )

  test('is listed as a link, and removed without its target', async () => {
    await using bench = await setJail()
    await symlink('../outside', bench.inside('link'))
    await mkdir(bench.inside('dir'))
    await symlink('../../outside', bench.inside('dir', 'inner'))
    expect(await list(bench.jail)).toEqual(['dir directory', 'dir/inner symlink', 'link symlink'])
    await removeAll(bench.jail, 'link')
    await removeAll(bench.jail, 'dir')
    expect(await list(bench.jail)).toEqual([])
    expect(await readdir(bench.outside)).toEqual(['canary'])
  })
})

const ROUNDS = effort(25, 150)
/** Until the name was seen as both, on a machine that runs one of the two processes for long. */
const MOST_ROUNDS = 5000

describe('a name that is swapped continuously', () => {
  test.each(['directory', 'file'] as const)('a %s and a link: nothing outside is reached', async (kind) => {
    await using bench = await setJail()
    const { jail } = bench
    const target = kind === 'directory' ? bench.outside : join(bench.outside, 'canary')
    const swapper = fork(join(import.meta.dirname, '../children/swap-in-a-loop.ts'), [bench.inside('x'), target, kind])
    await once(swapper, 'message')
    const seen = new Set<string>()
    const name = kind === 'directory' ? 'x/canary' : 'x'
    try {
      for (
        let round = 0;
        round < ROUNDS || (round < MOST_ROUNDS && !(seen.has('harmless') && seen.size > 1));
        round++
      ) {
        seen.add(await read(jail, name).catch(codeOf))
        await Promise.all([
          write(jail, name, 'harmless').catch(codeOf),
          touch(jail, path(name).names, ANY_FILE).catch(codeOf),
          list(jail).catch(codeOf),
          ...(round % 4 ? [] : [removeAll(jail, 'x').catch(codeOf)]),
          ...(kind === 'directory' ? [makeDirectory(jail, 'x/made').catch(codeOf)] : []),
        ])
        if (round % 13 === 0)
          for (const ripgrep of ['rg', undefined]) {
            const query = { content: 'canary', ignore_case: false, path: '', limit: 100 }
            const deps = { ripgrep, redact: (line: string) => line, signal: AbortSignal.timeout(PATIENCE_MS) }
            expect((await searchFiles(jail, path(''), query, deps)).items).toEqual([])
          }
      }
    } finally {
      swapper.kill('SIGKILL')
      await once(swapper, 'exit')
    }
    expect([...seen].filter((content) => content.includes('canary:'))).toEqual([])
    expect(seen.has('harmless'), 'it was there at times').toBe(true)
    expect(seen.size, 'and at others not').toBeGreaterThan(1)
    expect(await readdir(bench.outside)).toEqual(['canary'])
    expect(await readFile(join(bench.outside, 'canary'), 'utf8')).toBe(CANARY)
  })
})

const codeOf = (error: unknown) => String((error as { code?: unknown }).code)

describe('what is not a file', () => {
  test('is refused, and not opened: a process at the other end of a pipe does not notice', async () => {
    await using bench = await setJail()
    execFileSync('mkfifo', [bench.inside('pipe')])
    const socket = createServer().listen(bench.inside('socket'))
    await once(socket, 'listening')
    const waiting = execFileAsync('timeout', ['1', 'bash', '-c', `echo opened > ${bench.inside('pipe')}`])
    for (const name of ['pipe', 'socket'])
      for (const action of ['read', 'write', 'touch']) {
        expect(await outcomeOf(() => ACTIONS[action]!(bench.jail, name)), `${action} ${name}`).toBe('not_a_file')
      }
    expect(await list(bench.jail)).toEqual(['pipe other', 'socket other'])
    const query = { content: 'opened', ignore_case: false, path: '', limit: 10 }
    const deps = { ripgrep: undefined, redact: (line: string) => line, signal: AbortSignal.timeout(PATIENCE_MS) }
    expect((await searchFiles(bench.jail, path(''), query, deps)).items).toEqual([])
    expect(await waiting, 'it waited until it was ended').toBe(124)
    await removeAll(bench.jail, 'pipe')
    socket.close()
  })

  test('a directory is not a file, and a file not a directory', async () => {
    await using bench = await setJail()
    await mkdir(bench.inside('dir'))
    await writeFile(bench.inside('file'), 'content')
    for (const action of ['read', 'write', 'touch'])
      expect(await outcomeOf(() => ACTIONS[action]!(bench.jail, 'dir')), action).toBe('not_a_file')
    for (const [action, carryOut] of Object.entries(ACTIONS))
      expect(await outcomeOf(() => carryOut(bench.jail, 'file/x')), action).toBe('not_a_directory')
  })
})

async function execFileAsync(file: string, args: string[]): Promise<number | null> {
  const { spawn } = await import('node:child_process')
  const [code] = (await once(spawn(file, args, { stdio: 'ignore' }), 'exit')) as [number | null]
  return code
}

describe('the workdir', () => {
  test('that was removed, moved or replaced by a link is reported as missing', async () => {
    await using bench = await setJail()
    const moved = `${bench.workdir}.moved`
    await rename(bench.workdir, moved)
    expect(await outcomeOf(() => bench.open())).toBe('workdir_missing')
    await symlink(moved, bench.workdir)
    expect(await outcomeOf(() => bench.open())).toBe('workdir_missing')
    await rm(bench.workdir)
    await writeFile(bench.workdir, '')
    expect(await outcomeOf(() => bench.open())).toBe('workdir_missing')
  })

  test('is held open: operations affect the original, wherever its name leads now', async () => {
    await using bench = await setJail()
    await rename(bench.workdir, `${bench.workdir}.moved`)
    await symlink(bench.outside, bench.workdir)
    await write(bench.jail, 'new')
    expect(await outcomeOf(() => read(bench.jail, 'canary'))).toBe('file_not_found')
    expect(await readdir(bench.outside)).toEqual(['canary'])
    expect(await readdir(`${bench.workdir}.moved`)).toEqual(['new'])
  })

  test('itself cannot be removed, written or read', async () => {
    await using bench = await setJail()
    expect(await outcomeOf(() => removeAll(bench.jail, ''))).toBe('invalid_request')
    expect(await outcomeOf(() => read(bench.jail, ''))).toBe('not_a_file')
  })
})

describe('the server’s own files', () => {
  test('does not exist for clients, even inside the workdir; a directory that contains it cannot be removed', async () => {
    await using bench = await setJail()
    await mkdir(bench.inside('app', 'data'), { recursive: true })
    await writeFile(bench.inside('app', 'data', 'key'), 'the key')
    await writeFile(bench.inside('app', 'main'), 'content')
    await using jail = await bench.open({ forbidden: [bench.inside('app', 'data')] })
    expect(await list(jail)).toEqual(['app directory', 'app/main file'])
    for (const [action, carryOut] of Object.entries(ACTIONS)) {
      expect(await outcomeOf(() => carryOut(jail, 'app/data/key')), action).toBe('unsafe_path')
      expect(await outcomeOf(() => carryOut(jail, 'app/data')), action).toBe('unsafe_path')
    }
    expect(await outcomeOf(() => removeAll(jail, 'app'))).toBe('unsafe_path')
    for (const ripgrep of ['rg', undefined]) {
      const query = { content: 'key', ignore_case: false, path: '', limit: 10 }
      const deps = { ripgrep, redact: (line: string) => line, signal: AbortSignal.timeout(PATIENCE_MS) }
      expect((await searchFiles(jail, path(''), query, deps)).items).toEqual([])
    }
    expect(await readdir(bench.inside('app'))).toEqual(['data', 'main'])
  })
})

describe('a name that is not valid text', () => {
  test('is listed as far as it is valid, and removed with its directory', async () => {
    await using bench = await setJail()
    await mkdir(bench.inside('dir'))
    await writeFile(Buffer.concat([Buffer.from(`${bench.inside('dir')}/a`), Buffer.from([0xff])]), 'content')
    expect(await list(bench.jail)).toEqual(['dir directory', 'dir/a\ufffd file'])
    await removeAll(bench.jail, 'dir')
    expect(await list(bench.jail)).toEqual([])
  })
})

test('a tree that was made read-only can be removed by its owner', async () => {
  await using bench = await setJail()
  await mkdir(bench.inside('a', 'b'), { recursive: true })
  await writeFile(bench.inside('a', 'b', 'file'), '')
  execFileSync('chmod', ['-R', 'a-w', bench.inside('a')])
  await removeAll(bench.jail, 'a')
  expect(await readdir(bench.workdir)).toEqual([])
})

test('a tree of 250 levels is listed and removed; one of more is refused', async () => {
  await using bench = await setJail()
  await mkdir(bench.inside(...Array.from({ length: 250 }, () => 'd')), { recursive: true })
  await removeAll(bench.jail, 'd')
  expect(await readdir(bench.workdir)).toEqual([])
  await mkdir(bench.inside(...Array.from({ length: 270 }, () => 'd')), { recursive: true })
  expect(await outcomeOf(() => removeAll(bench.jail, 'd'))).toBe('unsafe_path')
  expect((await list(bench.jail)).length).toBe(257)
})

test('a workdir that cannot be opened for lack of descriptors is not reported as missing', async () => {
  const refused = Object.assign(new Error('too many open files'), { code: 'EMFILE', syscall: 'open' })
  let operations = 0
  const io = async <T>(work: () => Promise<T>): Promise<T> => {
    // The first one reads the rules.
    if (operations++ > 0) throw refused
    return await work()
  }
  const signal = new AbortController().signal
  await expect(openJail({ workdir: '/', rules: { forbidden: [] }, io, signal })).rejects.toBe(refused)
})
