/** Projects whose files are made to read something else, to hold up the server, or to fill its memory. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { chmod, mkdir, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeProject, markdown } from './project-directory.ts'

describe('instructions and entries', () => {
  test('that are pipes, directories, huge, links to the outside or not readable are ignored', async () => {
    await using outside = await makeProject({ 'secret.md': 'Not for you.', 'skills/x/SKILL.md': markdown('name: x') })
    await using project = await makeProject({
      'CLAUDE.md': '@pipe @huge.md @link.md @closed.md @up/secret.md @loop.md @/etc/passwd',
      'huge.md': '',
      'closed.md': 'Closed.',
      '.claude/skills/good/SKILL.md': markdown('name: good'),
    })
    const at = (name: string) => join(project.path, name)
    execFileSync('mkfifo', [at('pipe'), at('AGENTS.md')])
    await truncate(at('huge.md'), 2 ** 30)
    await symlink(join(outside.path, 'secret.md'), at('link.md'))
    await symlink(outside.path, at('up'))
    await symlink('loop.md', at('loop.md'))
    await chmod(at('closed.md'), 0)
    await mkdir(at('.claude/CLAUDE.md'))
    await symlink(join(outside.path, 'skills'), at('.claude/skills/linked'))
    await symlink('/', at('.claude/commands'))
    const { memory, settings } = await project.load()
    const closed = process.getuid?.() === 0 ? ['closed.md'] : []
    expect(memory.map(({ file }) => file.path)).toEqual(['CLAUDE.md', ...closed])
    expect(settings.skills.map(({ name }) => name)).toEqual(['good'])
    expect(settings.commands).toEqual([])
    expect(new Set(settings.ignored.map(({ path }) => path))).toEqual(
      new Set(
        [
          'pipe',
          'huge.md',
          'link.md',
          'up/secret.md',
          'loop.md',
          '/etc/passwd',
          '.claude/CLAUDE.md',
          'AGENTS.md',
        ].concat(closed.length ? [] : ['closed.md']),
      ),
    )
    expect(JSON.stringify({ memory, settings })).not.toContain('Not for you')
  })

  test('are found through links that stay inside, also in circles', async () => {
    await using project = await makeProject({ 'shared/skills/a/SKILL.md': markdown('name: a') })
    await mkdir(join(project.path, '.claude'))
    await symlink('../shared/skills', join(project.path, '.claude/skills'))
    await symlink('..', join(project.path, 'shared/skills/a/again'))
    const { settings } = await project.load()
    expect(settings.skills).toMatchObject([{ name: 'a', path: '.claude/skills/a/SKILL.md' }])
  })

  test('are at most 100, of 10,000 skills and of a deep tree', async () => {
    await using project = await makeProject({})
    const skills = join(project.path, '.claude/skills')
    for (let i = 0; i < 10_000; i += 1) {
      const directory = join(skills, `s${String(i).padStart(5, '0')}`)
      mkdirSync(directory, { recursive: true })
      if (i < 300) writeFileSync(join(directory, 'SKILL.md'), markdown(`description: Number ${i}.`))
    }
    await mkdir(join(project.path, '.claude/commands', ...Array.from({ length: 50 }, () => 'd')), { recursive: true })
    const { settings } = await project.load()
    expect(settings.skills).toHaveLength(100)
    expect(settings.skills[99]?.name).toBe('s00099')
    expect(settings.ignored.map(({ what }) => what)).toEqual([
      'more files of the kind skill',
      'more files of the kind slash command',
    ])
  })

  test('have at most 4 MiB in all, and the list of what was ignored is limited', async () => {
    const big = 'x'.repeat(200_000)
    const files = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`.claude/skills/s${i}/SKILL.md`, big]))
    const broken = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`.claude/agents/a${i}.md`, '---\n']))
    const permissions = { allow: Array.from({ length: 400 }, (_, i) => `Bash(a${i})`) }
    await using project = await makeProject({
      ...files,
      ...broken,
      '.claude/settings.json': JSON.stringify({ permissions }),
    })
    const { settings } = await project.load()
    expect(settings.skills.length).toBeLessThan(22)
    expect(settings.ignored).toHaveLength(101)
    expect(settings.ignored.at(-1)?.what).toMatch(/^\d+ more$/)
  })
})

describe('a settings file', () => {
  const read = async (make: (path: string) => Promise<unknown> | void) => {
    await using project = await makeProject({ '.claude/x': '' })
    await make(join(project.path, '.claude/settings.json'))
    return await project.load().then(
      () => 'loaded',
      (error: unknown) => (error instanceof Error ? error.message : ''),
    )
  }

  test.each([
    ['a pipe', (path: string) => void execFileSync('mkfifo', [path]), 'It is a named pipe.'],
    ['a directory', (path: string) => mkdir(path), 'It is a directory.'],
    ['a link to the outside', (path: string) => symlink('/etc/hostname', path), 'outside'],
    ['a link to nothing', (path: string) => symlink('nothing', path), 'symbolic link'],
    ['a link to a device', (path: string) => symlink('/dev/zero', path), 'outside'],
    ['huge', async (path: string) => await writeFile(path, '').then(() => truncate(path, 2 ** 30)), '256 KiB'],
  ])('that is %s stops the conversation', async (_, make, message) => {
    expect(await read(make)).toContain(message)
  })

  test.runIf(process.getuid?.() !== 0)('that cannot be read stops the conversation', async () => {
    expect(await read(async (path) => await writeFile(path, '{}', { mode: 0 }))).toContain('Permission denied')
  })

  test('does not exist if .claude is a file', async () => {
    await using project = await makeProject({ '.claude': 'a file' })
    expect((await project.load()).settings.settings_files).toEqual([])
  })
})
