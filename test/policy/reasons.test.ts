/** What a decision says about itself: why a call is asked about or denied, and which rules would allow it. */
import { expect, test } from 'vitest'
import type { GateDecision } from '../../src/policy/decide.ts'
import type { ToolAccess } from '../../src/policy/tool-access.ts'
import type { Given } from './decisions.ts'
import { decideAccess, decideCommand } from './decisions.ts'

const ask = (reason: string, ...rules: string[]): GateDecision => {
  return { behavior: 'ask', reason, ...(rules.length > 0 && { rules }) }
}
const deny = (reason: string): GateDecision => ({ behavior: 'deny', reason })
const ENV: Given = { mode: 'bypass', deny: ['Read(./.env)'] }

test.each<[rule: string, command: string, given: Given, decision: GateDecision]>([
  ['a hook denies', 'ls', { hook: { decision: 'deny' } }, deny('A hook denied it.')],
  ['a hook denies with a reason', 'ls', { hook: { decision: 'deny', reason: 'no' } }, deny('A hook denied it: no')],
  ['a hook asks', 'ls', { hook: { decision: 'ask' } }, ask('a hook asks about it')],
  ['a hook asks with a reason', 'ls', { hook: { decision: 'ask', reason: 'why' } }, ask('a hook asks about it: why')],
  ['a rule denies', 'cat .env', ENV, deny('The rule Read(./.env) denies it.')],
  [
    'of two rules that deny, the first is named',
    'cat .env',
    { deny: ['Bash(ls:*)', 'Read(./.env)', 'Bash(cat:*)'] },
    deny('The rule Read(./.env) denies it.'),
  ],
  ['a rule may deny', 'cat $x', ENV, ask('it is not certain that the deny rule Read(./.env) does not hold for it')],
  [
    'of two rules that may deny, the first is named',
    'cat $x',
    { deny: ['Bash(ls:*)', 'Read(./.env)', 'Read(./b)'] },
    ask('it is not certain that the deny rule Read(./.env) does not hold for it'),
  ],
  [
    'a rule that denies comes before one that may deny',
    'cat $x .env',
    { deny: ['Read(./b)', 'Read(./.env)'] },
    deny('The rule Read(./.env) denies it.'),
  ],
  ['a rule asks', 'cat a', { ask: ['Bash(cat:*)'] }, ask('the rule Bash(cat:*) asks about it')],
  [
    'a rule may ask',
    'cat $x',
    { mode: 'bypass', ask: ['Read(./.env)'] },
    ask('it is not certain that the ask rule Read(./.env) does not hold for it'),
  ],
  [
    'a rule that may deny comes before one that asks',
    'cat $x',
    { ...ENV, ask: ['Bash'] },
    ask('it is not certain that the deny rule Read(./.env) does not hold for it'),
  ],
  [
    'a rule that asks comes before a hook that asks',
    'cat a',
    { ask: ['Bash'], hook: { decision: 'ask' } },
    ask('the rule Bash asks about it'),
  ],
  ['confirmation is on', 'ls', { confirmation: true }, ask('confirmation_mode is on')],
  [
    'a rule that asks comes before confirmation',
    'ls',
    { confirmation: true, ask: ['Bash'] },
    ask('the rule Bash asks about it'),
  ],
  [
    'nothing that confirmation asks about is remembered',
    'touch a',
    { confirmation: true },
    ask('confirmation_mode is on'),
  ],
  [
    'the mode is deny',
    'touch a',
    { mode: 'deny' },
    deny('The mode is deny, and the call needs a permission: it runs "touch a", which may change something.'),
  ],
  [
    'the mode is deny, and a rule asks',
    'ls',
    { mode: 'deny', ask: ['Bash'] },
    deny('The mode is deny, and the call needs a permission: the rule Bash asks about it.'),
  ],
  [
    'nobody approves',
    'touch a',
    { mode: 'callback' },
    deny(
      'The mode is callback and there is no approver, and the call needs a permission: it runs "touch a", which may change something.',
    ),
  ],
  [
    'somebody approves',
    'touch a',
    { mode: 'callback', hasApprover: true },
    ask('it runs "touch a", which may change something', 'Bash(touch a)'),
  ],
  [
    'the mode is plan',
    'touch a',
    { mode: 'plan' },
    deny('The mode is plan, and it runs "touch a", which may change something. Only reading is possible in this mode.'),
  ],
  [
    'an allow rule is nothing in the mode plan',
    'touch a',
    { mode: 'plan', allow: ['Bash(touch:*)'] },
    deny('The mode is plan, and it runs "touch a", which may change something. Only reading is possible in this mode.'),
  ],
  [
    'what reads elsewhere is asked about in the mode plan',
    'cat /etc/a',
    { mode: 'plan' },
    ask('it reads /etc/a, which is outside the workdir', 'Bash(cat /etc/a)'),
  ],
  [
    'a command may change something',
    'touch a',
    {},
    ask('it runs "touch a", which may change something', 'Bash(touch a)'),
  ],
  [
    'each command has its own rule, and equal ones have one',
    'touch a; touch b; touch a',
    {},
    ask('it runs "touch a", which may change something', 'Bash(touch a)', 'Bash(touch b)'),
  ],
  ['no rule is named if one is missing', 'touch a; touch *', {}, ask('it runs "touch a", which may change something')],
  ['no rule says what a variable stands for', 'touch "$x"', {}, ask('it runs "touch …", which may change something')],
  [
    'a long command is shown up to 80 characters',
    `touch ${'a'.repeat(74)}`,
    {},
    ask(`it runs "touch ${'a'.repeat(74)}", which may change something`, `Bash(touch ${'a'.repeat(74)})`),
  ],
  [
    'a longer command is cut there',
    `touch ${'a'.repeat(75)}`,
    {},
    ask(`it runs "touch ${'a'.repeat(74)}…", which may change something`, `Bash(touch ${'a'.repeat(75)})`),
  ],
  ['a variable changes the program', 'PATH=. ls', {}, ask('it runs "ls" with another PATH')],
  [
    'what cannot be seen',
    'eval "$x"',
    {},
    ask('it cannot be decided by rules: it evaluates a text that cannot be seen'),
  ],
  ['what is seen and not for a rule', 'PATH=.', {}, ask('it cannot be decided by rules: it sets PATH')],
  ['a program of the workdir', './a', {}, ask('it runs "./a", which may change something', 'Bash(./a)')],
  [
    'a command for strangers',
    'ls',
    { isStrangers: true },
    ask('it runs "ls", for a project that is not trusted', 'Bash(ls)'),
  ],
  [
    'a shell that changes for strangers',
    'x=1',
    { isStrangers: true },
    ask('it changes the shell for a project that is not trusted'),
  ],
  [
    'a shell that changes for strangers is a change',
    'x=1',
    { isStrangers: true, mode: 'plan' },
    deny(
      'The mode is plan, and it changes the shell for a project that is not trusted. Only reading is possible in this mode.',
    ),
  ],
  ['a command that runs elsewhere', 'ls', { cwd: '/etc' }, ask('it runs "ls" outside the workdir', 'Bash(ls)')],
  [
    'a comparison of directories',
    'diff src lib',
    {},
    ask('it runs "diff src lib", which follows links in directories', 'Bash(diff src lib)'),
  ],
  [
    'git may run a program',
    'git status',
    { gitProgram: 'sets x' },
    ask('it runs "git status", and git sets x', 'Bash(git status)'),
  ],
  [
    'git may run a program, which is a change',
    'git status',
    { mode: 'plan', gitProgram: 'sets x' },
    deny('The mode is plan, and it runs "git status", and git sets x. Only reading is possible in this mode.'),
  ],
  [
    'git that runs elsewhere is a change',
    'git status',
    { mode: 'plan', cwd: '/etc' },
    deny('The mode is plan, and it runs "git status" outside the workdir. Only reading is possible in this mode.'),
  ],
  [
    'another program that runs elsewhere only reads',
    'ls',
    { mode: 'plan', cwd: '/etc' },
    ask('it runs "ls" outside the workdir', 'Bash(ls)'),
  ],
  ['a redirection changes a file', 'ls > a', {}, ask('it changes a', 'Edit(a)')],
  ['a redirection changes an unknown file', 'ls > "$x"', {}, ask('it changes a path that is not known')],
  [
    'a redirection reads a file elsewhere',
    'cat < /etc/a',
    {},
    ask('it reads /etc/a, which is outside the workdir', 'Read(//etc/a)'),
  ],
  [
    'all files that a command reads are reasons, and it has one rule',
    'cat /a /b',
    {},
    ask('it reads /a, which is outside the workdir', 'Bash(cat /a /b)'),
  ],
])('%s', (_, command, given, decision) => expect(decideCommand(command, given)).toEqual(decision))

test.each<[rule: string, tool: string, access: ToolAccess]>([
  ['Read', 'FileEditor', { kind: 'read', paths: ['a'] }],
  ['Read(a)', 'FileEditor', { kind: 'read', paths: ['a'] }],
  ['Edit', 'FileEditor', { kind: 'edit', paths: ['a'] }],
  ['Edit(a)', 'FileEditor', { kind: 'edit', paths: ['a'] }],
  ['FileEditor', 'FileEditor', { kind: 'edit', paths: ['a'] }],
  ['WebFetch(domain:a.example)', 'WebFetch', { kind: 'fetch', url: 'https://a.example' }],
  ['mcp__*', 'mcp__a__b', { kind: 'other' }],
])('the rule %s is named as it is written', (rule, tool, access) => {
  expect(decideAccess(tool, access, { mode: 'bypass', deny: [rule] })).toEqual(deny(`The rule ${rule} denies it.`))
})

test('rules about files, commands and other hosts are about no page, and none for a host is about a search', () => {
  const rules = ['Read', 'Read(a)', 'Edit(a)', 'Bash(a)', 'Task', 'WebFetch(domain:b.example)']
  const page: ToolAccess = { kind: 'fetch', url: 'https://a.example' }
  expect(decideAccess('WebFetch', page, { mode: 'bypass', deny: rules }).behavior).toBe('allow')
  expect(decideAccess('WebSearch', { kind: 'fetch', url: undefined }, { mode: 'bypass', deny: rules }).behavior).toBe(
    'allow',
  )
})

test.each<[path: string, rules: readonly string[]]>([
  ['a', ['Edit(a)']],
  ['src/a', ['Edit(src/a)']],
  ['./a', ['Edit(./a)']],
  ['/work/project/src/a', ['Edit(src/a)']],
  ['/work/projects/a', ['Edit(//work/projects/a)']],
  ['/etc/a', ['Edit(//etc/a)']],
  ['.a', ['Edit(.a)']],
  ['a..', ['Edit(a..)']],
  ['a/..b', ['Edit(a/..b)']],
  ['a b', ['Edit(a b)']],
  ['[a]', ['Edit([a])']],
  ['(a)', ['Edit((a))']],
  ['3.12\u202FPM.png', ['Edit(3.12\u202FPM.png)']],
  ['/work/project', ['Edit(//work/project)']],
  ['~a/b', []],
  ['~', []],
  ['', []],
  ['.', []],
  ['..', []],
  ['src/', []],
  ['src/.', []],
  ['src/..', []],
  ['../a', []],
  ['src/../a', []],
  ['a*', []],
  ['a?', []],
  [' a', []],
  ['a ', []],
  ['src/\u200Ba', []],
  ['a\u0085/b', []],
  ['[a', []],
  ['a]', []],
  ['(a', []],
  ['a)', []],
])('the rule for exactly the file %j is %j', (path, rules) => {
  const edit: ToolAccess = { kind: 'edit', paths: [path] }
  const decision = decideAccess('Write', edit)
  expect(decision.behavior === 'ask' ? (decision.rules ?? []) : decision).toEqual(rules)
  if (rules.length > 0) expect(decideAccess('Write', edit, { allow: rules }).behavior).toBe('allow')
})

test('a command with a character that nobody sees has no rule', () => {
  const decision = decideAccess('Bash', { kind: 'command', command: 'touch a\u200Bb', cwd: '/work/project' })
  expect(decision).toMatchObject({ behavior: 'ask' })
  expect(decision).not.toHaveProperty('rules')
})

test('a question about several files has a rule for each', () => {
  const read: ToolAccess = { kind: 'read', paths: ['/a', 'b', '/c'] }
  expect(decideAccess('Read', read)).toEqual(ask('it reads /a, which is outside the workdir', 'Read(//a)', 'Read(//c)'))
})

test('a question about another tool has the rule for all its calls', () => {
  expect(decideAccess('Task', { kind: 'other' })).toEqual(ask('it calls Task, which may change something', 'Task'))
})
