/** Every mode, each kind of rule and each kind of action, compared with the table of docs/permissions.md. */
import { describe, expect, test } from 'vitest'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import type { ToolAccess } from '../../src/policy/tool-access.ts'
import { decideAccess } from './decisions.ts'

const MODES = ['default', 'accept_edits', 'plan', 'bypass', 'deny', 'callback'] as const
const LISTS = ['no', 'allow', 'ask', 'deny'] as const

type GatedAction = {
  readonly tool: string
  readonly access: ToolAccess
  /** Rules that match it, each of another form. */
  readonly rules: readonly string[]
  /** Where the table of modes has it. */
  readonly column: 'reads inside' | 'reads outside' | 'edits inside' | 'changes' | 'fetches'
}

const command = (text: string): ToolAccess => ({ kind: 'command', command: text, cwd: '/work/project' })
const ACTIONS: Readonly<Record<string, GatedAction>> = {
  'a file in the workdir is read': {
    tool: 'Read',
    access: { kind: 'read', paths: ['src/a'] },
    rules: ['Read', 'Read(src/**)', 'Read(*/a)'],
    column: 'reads inside',
  },
  'a file elsewhere is read': {
    tool: 'Read',
    access: { kind: 'read', paths: ['/etc/a'] },
    rules: ['Read', 'Read(//etc/**)'],
    column: 'reads outside',
  },
  'a command reads in the workdir': {
    tool: 'Bash',
    access: command('cat src/a'),
    rules: ['Bash', 'Bash(cat:*)', 'Bash(cat src/a)'],
    column: 'reads inside',
  },
  'a command reads elsewhere': {
    tool: 'Bash',
    access: command('cat /etc/a'),
    rules: ['Bash', 'Bash(cat:*)', 'Read(//etc/a)'],
    column: 'reads outside',
  },
  'a file in the workdir is edited': {
    tool: 'Write',
    access: { kind: 'edit', paths: ['src/a'] },
    rules: ['Write', 'Edit', 'Edit(src/a)'],
    column: 'edits inside',
  },
  'a redirection writes in the workdir': {
    tool: 'Bash',
    access: command('ls > src/a'),
    rules: ['Bash', 'Edit', 'Edit(src/*)'],
    column: 'edits inside',
  },
  'a file elsewhere is edited': {
    tool: 'Edit',
    access: { kind: 'edit', paths: ['/etc/a'] },
    rules: ['Edit', 'Edit(//etc/a)'],
    column: 'changes',
  },
  'a command changes something': {
    tool: 'Bash',
    access: command('npm test'),
    rules: ['Bash', 'Bash(npm test)', 'Bash(npm *)'],
    column: 'changes',
  },
  'a page is fetched': {
    tool: 'WebFetch',
    access: { kind: 'fetch', url: 'https://example.org/a' },
    rules: ['WebFetch', 'WebFetch(domain:example.org)'],
    column: 'fetches',
  },
  'a tool of an MCP server is called': {
    tool: 'mcp__files__write',
    access: { kind: 'other' },
    rules: ['mcp__files__write', 'mcp__files'],
    column: 'changes',
  },
}

/** What the mode says by itself. */
const BY_MODE: Readonly<Record<PermissionMode, (column: GatedAction['column']) => string>> = {
  default: (column) => (column === 'reads inside' ? 'allow' : 'ask'),
  accept_edits: (column) => (column === 'reads inside' || column === 'edits inside' ? 'allow' : 'ask'),
  plan: (column) => (column === 'reads inside' ? 'allow' : changes(column) ? 'deny' : 'ask'),
  bypass: () => 'allow',
  deny: (column) => (column === 'reads inside' ? 'allow' : 'deny'),
  callback: (column) => (column === 'reads inside' ? 'allow' : 'deny'),
}

const changes = (column: GatedAction['column']) => column === 'edits inside' || column === 'changes'

/** The order of docs/permissions.md: the first that applies. */
function expected(
  mode: PermissionMode,
  list: (typeof LISTS)[number],
  column: GatedAction['column'],
  given: Given,
): string {
  const asks = mode === 'deny' || mode === 'callback' ? 'deny' : 'ask'
  if (list === 'deny') return 'deny'
  if (given.approved) return 'allow'
  if (mode === 'plan' && changes(column)) return 'deny'
  if (list === 'ask' || given.confirmation) return asks
  return list === 'allow' ? 'allow' : BY_MODE[mode](column)
}

type Given = { readonly approved: boolean; readonly confirmation: boolean }

describe.each(Object.entries(ACTIONS))('%s', (_, { tool, access, rules, column }) => {
  test.each(MODES)('in the mode %s', (mode) => {
    for (const list of LISTS)
      for (const rule of rules)
        for (const approved of [false, true])
          for (const confirmation of [false, true]) {
            const given = { approved, confirmation }
            const { behavior } = decideAccess(tool, access, {
              mode,
              ...given,
              ...(list !== 'no' && { [list]: [rule] }),
            })
            const what = `${list} ${rule}, ${JSON.stringify(given)}`
            expect([what, behavior]).toEqual([what, expected(mode, list, column, given)])
          }
  })
})
