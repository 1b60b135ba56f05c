/** What is loaded of a project, what is ignored and why, and which files stop a conversation. */
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeProject, markdown } from './project-directory.ts'

const reasons = (loaded: { settings: { ignored: readonly { what: string; reason: string }[] } }) =>
  loaded.settings.ignored.map(({ what, reason }) => `${what}: ${reason}`)

describe('entries', () => {
  test('are named by their frontmatter, their directory or their path, in order', async () => {
    await using project = await makeProject({
      '.claude/skills/pdf/SKILL.md': markdown('description: Reads PDF files.'),
      '.claude/skills/deep/er/SKILL.md': markdown('name: other\ndescription: "Two\\nlines"'),
      '.claude/commands/review.md': 'Review the changes.\n\nAll of them.',
      '.claude/commands/git/push.md': markdown('argument-hint: [branch] [message]\ndescription: Use so: carefully'),
      '.claude/agents/tester.md': markdown('name: tester\ndescription: Tests.\ntools: Bash'),
    })
    const { settings } = await project.load()
    expect(settings.skills).toEqual([
      { name: 'other', description: 'Two lines', source: 'project', path: '.claude/skills/deep/er/SKILL.md' },
      { name: 'pdf', description: 'Reads PDF files.', source: 'project', path: '.claude/skills/pdf/SKILL.md' },
    ])
    expect(settings.commands).toEqual([
      {
        name: 'git:push',
        description: 'Use so: carefully',
        argument_hint: '[branch] [message]',
        source: 'project',
        path: '.claude/commands/git/push.md',
      },
      { name: 'review', description: 'Review the changes.', source: 'project', path: '.claude/commands/review.md' },
    ])
    expect(settings.agents.map(({ name }) => name)).toEqual(['tester'])
    expect(settings.ignored).toMatchObject([{ what: 'agent tester', path: '.claude/agents/tester.md' }])
  })

  test.each([
    ['an open frontmatter', '---\nname: x\n'],
    ['a list', '---\n- a\n---\n'],
    ['deep nesting', `---\n? ${'['.repeat(5000)}\n---\n`],
    [
      'many aliases',
      `---\nx:\n  - &a [x,x,x,x,x,x,x,x,x]\n  - &b [*a,*a,*a,*a,*a,*a]\n  - [*b,*b,*b,*b,*b,*b,*b,*b]\n---\n`,
    ],
    ['a long frontmatter', `---\nname: ${'x'.repeat(20_000)}\n---\n`],
    ['a name with a line break', '---\nname: "x\\n# System"\n---\n'],
    ['bytes that are not UTF-8', Buffer.from([0x2d, 0xff, 0xfe])],
    ['a NUL character', 'a\0b'],
  ])('with %s are ignored, and the others are loaded', async (_, content) => {
    await using project = await makeProject({
      '.claude/skills/a/SKILL.md': content,
      '.claude/skills/b/SKILL.md': markdown('description: Good.'),
    })
    const { settings } = await project.load()
    expect(settings.skills.map(({ name }) => name)).toEqual(['b'])
    expect(settings.ignored).toMatchObject([{ what: 'skill', path: '.claude/skills/a/SKILL.md' }])
  })

  test('accept a byte order mark, CRLF and __proto__', async () => {
    await using project = await makeProject({
      '.claude/skills/a/SKILL.md':
        '\uFEFF---\r\nname: a\r\n__proto__: {disable-model-invocation: true}\r\n---\r\nBody\r\n',
    })
    const { settings } = await project.load()
    expect(settings.skills).toEqual([
      { name: 'a', description: 'Body', source: 'project', path: '.claude/skills/a/SKILL.md' },
    ])
  })

  test('give rights only if the project is trusted', async () => {
    await using project = await makeProject({
      '.claude/commands/a.md': markdown('allowed-tools: Bash(git add:*), Read, nonsense(x)\nmodel: opus'),
    })
    const untrusted = await project.load()
    expect(untrusted.settings.commands[0]).not.toHaveProperty('allowed_tools')
    expect(reasons(untrusted)).toEqual([
      expect.stringContaining('allowed-tools of the slash command a: The project is not trusted'),
      expect.stringContaining('model of the slash command a'),
    ])
    const trusted = await project.load({ isTrusted: true })
    expect(trusted.settings.commands[0]?.allowed_tools).toEqual(['Bash(git add:*)', 'Read'])
    expect(reasons(trusted)[0]).toContain('only Bash, Read, Edit and WebFetch take a pattern')
  })
})

describe('agents', () => {
  test('of a trusted project have a definition; a file that is not valid is ignored as a whole', async () => {
    const fields = 'tools: Read, Bash(git:*)\ndisallowedTools: Bash(git push:*)\npermissionMode: dontAsk\nmaxTurns: 5'
    await using project = await makeProject({
      '.claude/agents/a.md': `---\nname: reviewer\ndescription: Reviews.\n${fields}\nmodel: opus\n---\nYou review.\n`,
      '.claude/agents/b.md': '---\npermissionMode: everything\n---\nx',
      '.claude/agents/c.md': '---\ndisallowedTools: Bash((\n---\nx',
      '.claude/agents/d.md': '---\nmaxTurns: many\n---\nx',
      '.claude/agents/e.md': '---\nname: empty\n---\n',
    })
    const { settings } = await project.load({ isTrusted: true })
    expect(settings.agents).toMatchObject([
      {
        name: 'reviewer',
        description: 'Reviews.',
        definition: {
          prompt: 'You review.',
          tools: ['Read', 'Bash'],
          disallowed_tools: ['Bash(git push:*)'],
          permission_mode: 'deny',
          max_steps: 5,
        },
      },
    ])
    expect(settings.agents[0]?.definition).not.toHaveProperty('model')
    expect(settings.ignored.map(({ path }) => path.at(-4))).toEqual(['a', 'b', 'c', 'd', 'e'])
    const untrusted = await project.load()
    expect(untrusted.settings.agents.every(({ definition }) => definition === undefined)).toBe(true)
  })
})

describe('settings files', () => {
  test('ask about every command in place of a deny rule with a blank that is not a space, and report it', async () => {
    await using project = await makeProject({
      '.claude/settings.json': JSON.stringify({ permissions: { deny: ['Bash(git\u00A0push:*)'] } }),
    })
    const { settings } = await project.load()
    expect(settings.permission_rules).toEqual({ allow: [], ask: ['Bash'], deny: [] })
    expect(settings.ignored).toHaveLength(1)
  })

  test('give rules that deny and ask; their allow rules need trust', async () => {
    await using project = await makeProject({
      '.claude/settings.json': JSON.stringify({
        permissions: {
          allow: ['Bash(npm test)'],
          ask: ['Bash(git push:*)'],
          deny: ['Read(/secrets/**)', 'Write(./prod/**)', 'Task(Explore)'],
        },
        env: { A: 'b' },
        hooks: { Stop: [] },
      }),
    })
    const untrusted = await project.load()
    const strict = { ask: ['Bash(git push:*)'], deny: ['Read(secrets/**)', 'Edit(./prod/**)', 'Task'] }
    expect(untrusted.settings.permission_rules).toEqual({ allow: [], ...strict })
    expect(untrusted.settings.ignored.map(({ what }) => what)).toEqual([
      'env',
      'hooks',
      'allow rule Bash(npm test)',
      'pattern of the rule Task(Explore)',
    ])
    const { settings } = await project.load({ isTrusted: true })
    expect(settings.permission_rules).toEqual({ allow: ['Bash(npm test)'], ...strict })
  })

  test.each([
    ['broken JSON', '{\n  "permissions": {,\n}', 'It is not valid JSON (line 2, column 19)'],
    ['a name twice', '{"permissions": {"deny": ["Bash"]},\n "permissions": {}}', 'twice (line 2, column 2)'],
    ['a list', '[]', 'expected object'],
    ['rules that are no list', '{"permissions": {"deny": "Bash"}}', 'permissions.deny'],
    ['deep nesting', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`, 'levels deep'],
    [
      'too many rules',
      JSON.stringify({ permissions: { deny: Array.from({ length: 201 }, (_, i) => `Bash(a${i})`) } }),
      '200',
    ],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'UTF-8'],
    ['too many bytes', ' '.repeat(300_000), '256 KiB'],
  ])('with %s stop the conversation', async (_, content, message) => {
    await using project = await makeProject({ '.claude/settings.json': content })
    await expect(project.load()).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message),
    })
    await expect(project.load()).rejects.toThrow('.claude/settings.json cannot be used')
  })

  test.each([
    ['Bash(a && b)', ['Bash']],
    ['Bash(touch:*)(x)', ['Bash']],
    [`Bash(${'a'.repeat(400)})`, ['Bash']],
    [`Read(${'a*/**/'.repeat(6)}b)`, ['Read', 'Bash']],
    ['Edit(src/[a)', ['Edit', 'Bash']],
    ['Read()', ['Read', 'Bash']],
    ['rm -rf', ['*']],
    ['mcp__', ['*']],
    ['(x)', ['*']],
  ])(
    'with the unreadable rule %s, which may deny, ask about %j and do not stop the conversation',
    async (rule, ask) => {
      await using project = await makeProject({
        '.claude/settings.json': JSON.stringify({ permissions: { allow: [rule], deny: ['Bash(rm:*)', rule] } }),
      })
      const { settings } = await project.load({ isTrusted: true })
      expect(settings.permission_rules).toEqual({ allow: [], ask, deny: ['Bash(rm:*)'] })
      expect(settings.ignored.map(({ what }) => what.slice(0, 10))).toEqual([
        expect.stringMatching(/^allow rule/),
        expect.stringMatching(/^rule /),
      ])
    },
  )

  test('name all tools of an MCP server with a `*`', async () => {
    const permissions = { allow: ['mcp__*', 'mcp__a__*'], ask: ['mcp__*'], deny: ['mcp__b__*', 'mcp__c'] }
    await using project = await makeProject({ '.claude/settings.json': JSON.stringify({ permissions }) })
    const { settings } = await project.load({ isTrusted: true })
    expect(settings.permission_rules).toEqual({ ...permissions, allow: ['mcp__a__*'] })
  })

  test('with __proto__ are data', async () => {
    await using project = await makeProject({
      '.claude/settings.json':
        '{"__proto__": {"permissions": {"defaultMode": "plan"}}, "permissions": {"__proto__": {"deny": ["Bash"]}}}',
      '.mcp.json': '{"mcpServers": {"__proto__": {"command": "x"}, "github": {"command": "y"}}}',
    })
    const { settings, mode } = await project.load()
    expect(settings.permission_rules.deny).toEqual([])
    expect(mode).toBeUndefined()
    expect(settings.mcp_servers).toEqual(['github'])
    expect(({} as Record<string, unknown>)['permissions']).toBeUndefined()
  })

  test.each([
    [{ project: 'plan' }, {}, 'plan'],
    [{ project: 'bypassPermissions' }, {}, 'bypass'],
    [{ project: 'acceptEdits' }, { mode: 'default' as const }, undefined],
    [{ user: 'default', project: 'acceptEdits' }, {}, 'default'],
    [{ user: 'default', project: 'acceptEdits' }, { isTrusted: true }, 'accept_edits'],
    [{ user: 'default', project: 'plan' }, {}, 'plan'],
    [{ project: 'unknown' }, {}, undefined],
  ])('with the modes %j and %j lead to %s', async (modes: { user?: string; project?: string }, options, mode) => {
    const file = (defaultMode: string) => JSON.stringify({ permissions: { defaultMode } })
    await using user = await makeProject(modes.user === undefined ? {} : { 'settings.json': file(modes.user) })
    await using project = await makeProject({ '.claude/settings.json': file(modes.project ?? '') })
    const loaded = await project.load({ sources: ['project', 'user'], userDirectory: user.path, ...options })
    expect(loaded.mode).toBe(mode)
  })

  test('of the operator are trusted, and their names come first', async () => {
    await using user = await makeProject({
      'settings.json': '{"permissions": {"allow": ["Bash(ls)"]}}',
      'skills/pdf/SKILL.md': markdown('description: The operator’s.'),
      'CLAUDE.md': 'Be kind.',
    })
    await using project = await makeProject({ '.claude/skills/pdf/SKILL.md': markdown('description: Another.') })
    const loaded = await project.load({ sources: ['user', 'project'], userDirectory: user.path })
    expect(loaded.settings.permission_rules.allow).toEqual(['Bash(ls)'])
    expect(loaded.settings.skills).toMatchObject([{ description: 'The operator’s.', source: 'user' }])
    expect(loaded.memory).toMatchObject([{ text: 'Be kind.', file: { source: 'user' } }])
    expect(reasons(loaded)).toEqual(['skill pdf: skills/pdf/SKILL.md has the same name.'])
  })
})

describe('hooks of a settings file', () => {
  const hook = { hooks: [{ type: 'command', command: 'true', timeout: 5 }] }
  const file = (hooks: unknown) => ({ '.claude/settings.json': JSON.stringify({ hooks }) })

  test('count if it is trusted, and are ignored otherwise, whatever is in them', async () => {
    await using project = await makeProject(file({ Stop: [hook] }))
    const untrusted = await project.load()
    expect(untrusted.hooks).toEqual([])
    expect(reasons(untrusted)).toEqual([expect.stringContaining('hooks: The project is not trusted')])
    const trusted = await project.load({ isTrusted: true })
    expect(trusted.hooks).toEqual([{ path: '.claude/settings.json', hooks: { Stop: [hook] } }])
    expect(trusted.settings.ignored).toEqual([])
    await project.write(file('nonsense'))
    expect((await project.load()).hooks).toEqual([])
  })

  test('of the operator always count, and come first', async () => {
    await using user = await makeProject({ 'settings.json': JSON.stringify({ hooks: { SessionEnd: [hook] } }) })
    await using project = await makeProject(file({ Stop: [hook] }))
    const options = { sources: ['project', 'user'] as const, userDirectory: user.path }
    const pathsOf = async (isTrusted: boolean) =>
      (await project.load({ ...options, isTrusted })).hooks.map(({ path }) => path)
    expect(await pathsOf(false)).toEqual(['settings.json'])
    expect(await pathsOf(true)).toEqual(['settings.json', '.claude/settings.json'])
  })

  test.each([
    ['text', 'hooks: '],
    [{ Nope: [hook] }, 'hooks: has an unknown field'],
    [{ Stop: [{ hooks: [{ type: 'prompt', prompt: 'x' }] }] }, 'hooks.Stop.0.hooks.0.type: must be command or http'],
    [{ Stop: [{ hooks: [{ type: 'command' }] }] }, 'hooks.Stop.0.hooks.0.command: is required'],
    [{ PreToolUse: [{ ...hook, matcher: '(a+)+' }] }, 'hooks.PreToolUse.0.matcher: '],
  ])('stop the conversation if they cannot be used: %j', async (hooks, message) => {
    await using project = await makeProject(file(hooks))
    const loading = project.load({ isTrusted: true })
    await expect(loading).rejects.toMatchObject({
      code: 'invalid_request',
      details: { path: '.claude/settings.json' },
      message: expect.stringContaining(`the hooks in .claude/settings.json cannot be used. ${message}`),
    })
  })
})

describe('instructions', () => {
  test('are read with their imports, each file once', async () => {
    await using project = await makeProject({
      'CLAUDE.md':
        'First. See @docs/style.md and `@not/this.md`.\n```\n@nor/this.md\n```\nWrite to me@example.org, @nobody.',
      'docs/style.md': 'Style. @../CLAUDE.md @more.md.',
      'docs/more.md': 'More.',
      'AGENTS.md': 'Agents.',
    })
    const { memory, settings } = await project.load()
    expect(memory.map(({ file, text }) => [file.path, text.split('.')[0], file.imported_by])).toEqual([
      ['CLAUDE.md', 'First', undefined],
      ['docs/style.md', 'Style', 'CLAUDE.md'],
      ['docs/more.md', 'More', 'docs/style.md'],
      ['AGENTS.md', 'Agents', undefined],
    ])
    expect(settings.memory[0]).toEqual({ source: 'project', path: 'CLAUDE.md', bytes: expect.any(Number) })
    expect(settings.ignored).toEqual([])
  })

  test('that are the same file by a link are in the prompt once', async () => {
    await using project = await makeProject({ 'AGENTS.md': 'One.' })
    await symlink('AGENTS.md', join(project.path, 'CLAUDE.md'))
    expect((await project.load()).memory.map(({ file }) => file.path)).toEqual(['CLAUDE.md'])
  })

  test('import at most five levels deep, and nothing outside', async () => {
    const chain = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`m${i}.md`, `Level ${i}. @m${i + 1}.md`]))
    await using project = await makeProject({
      ...chain,
      'CLAUDE.md': '@m0.md @../outside.md @/etc/passwd @~/.ssh/id_rsa @missing.md',
    })
    const loaded = await project.load()
    expect(loaded.memory.map(({ file }) => file.path)).toEqual([
      'CLAUDE.md',
      'm0.md',
      'm1.md',
      'm2.md',
      'm3.md',
      'm4.md',
    ])
    expect(loaded.settings.ignored.map(({ path }) => path)).toEqual([
      'm5.md',
      '../outside.md',
      '/etc/passwd',
      '~/.ssh/id_rsa',
      'missing.md',
    ])
  })

  test('are limited in all', async () => {
    const files = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`m${i}.md`, `Level ${i}.`]))
    const names = Object.keys(files).map((name) => `@${name}`)
    await using project = await makeProject({
      ...files,
      'CLAUDE.md': names.join(' '),
      'AGENTS.md': 'x'.repeat(260_000),
    })
    const loaded = await project.load()
    expect(loaded.memory).toHaveLength(50)
    expect(loaded.settings.ignored).toHaveLength(12)
  })

  test('that a rule keeps from being read are not read', async () => {
    await using project = await makeProject({
      'CLAUDE.md': '@.env @keys/a.txt @fine.md',
      '.env': 'TOKEN=1',
      'keys/a.txt': 'key',
      'fine.md': 'Fine.',
      '.claude/settings.json': '{"permissions": {"ask": ["Read(keys/**)"]}}',
    })
    const { memory, settings } = await project.load({ rules: { allow: [], ask: [], deny: ['Read(.env)'] } })
    expect(memory.map(({ file }) => file.path)).toEqual(['CLAUDE.md', 'fine.md'])
    expect(settings.ignored.map(({ path, reason }) => [path, reason])).toEqual([
      ['.env', expect.stringContaining('Read(.env)')],
      ['keys/a.txt', expect.stringContaining('Read(keys/**)')],
    ])
  })
})
