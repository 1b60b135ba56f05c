/** What of a configuration certainly makes git run no program. */
import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../../src/policy/git/harmless-config.ts'

const NOTHING = { hooks: [], worktrees: [], files: [] }
const UNREADABLE = 'cannot be read with certainty'

test.each([
  ['nothing', ''],
  ['a section alone', '[core]'],
  ['keys that run nothing', '[core]\n\tbare = false\n\trepositoryformatversion = 0\n[user]\nname = A B\nemail = a@b'],
  ['names in any case', '[CORE]\nBare = true\n[Remote "Origin"]\nURL = x'],
  ['a key of a named section', '[remote "origin"]\n\turl = x\n\tfetch = +refs/heads/*:refs/remotes/origin/*'],
  ['a name with a dot instead of quotes', '[remote.origin]\nurl = x'],
  ['names with quotes and backslashes', String.raw`[branch "a \"b\" \\c"]` + '\nmerge = x'],
  ['every key of a section that only shows', '[advice]\nanything = x\n[gui]\nother = y'],
  ['a key without a value', '[core]\nbare'],
  ['comments and empty lines', '# a\n; b\n\n  \t\n[core] # c\n  ; d\n[user] ; e\nname = x ; y'],
  ['blanks around all of it', ' \t[core] \t\n \tbare\t= \ttrue \t'],
  ['lines that end with a return', '[core]\r\nbare = true\r\n'],
  ['a value in quotes', '[core]\nfsmonitor = "false"'],
  ['a name of the longest kind', `[branch "${'a'.repeat(1000)}"]\nmerge = x`],
])('%s is harmless', (_, text) => expect(checkConfig(text)).toEqual(NOTHING))

describe('a value decides about', () => {
  test.each<[name: string, section: string, harmless: readonly string[], others: readonly string[]]>([
    [
      'core.fsmonitor',
      '[core]\nfsmonitor = ',
      ['false', 'no', 'off', '0', 'FALSE', 'Off'],
      ['true', '', '1', '00', 'xfalse', 'falsex', './x', 'false\xa0', '"false" x', String.raw`"fa\lse"`],
    ],
    ['extensions.objectFormat', '[extensions]\nobjectFormat = ', ['sha1', 'SHA1'], ['sha256', 'xsha1', 'sha1x', '']],
    [
      'format.pretty',
      '[format]\npretty = ',
      ['oneline', 'short', 'medium', 'full', 'fuller', 'reference', 'email', 'raw', '%h', '%h %s', '%h%aG', 'x %%'],
      ['', 'x', 'xraw', 'rawx', '%G?', '%h %GK', '%-G?', '%+G?', '% G?', 'Oneline'],
    ],
  ])('%s', (name, section, harmless, others) => {
    expect(harmless.filter((value) => typeof checkConfig(section + value) === 'string')).toEqual([])
    const reason = `sets ${name.toLowerCase()}, which may run a program`
    expect(others.filter((value) => checkConfig(section + value) !== reason)).toEqual([])
  })
})

test.each([
  ['a key that is not known', '[core]\npager = x', 'core.pager'],
  ['a section that is not known', '[x]\ny = z', 'x.y'],
  ['a key of a named section that is only known without a name', '[core "x"]\nbare = true', 'core.*.bare'],
  ['a key without a name that is only known with one', '[remote]\nurl = x', 'remote.url'],
  ['a key of a named section whose plain keys only show', '[gui "x"]\ny = z', 'gui.*.y'],
  ['a key that only begins as a known one', '[core]\nbares = x', 'core.bares'],
  ['a dot in the place of a name', '[advice.x]\ny = z', 'advice.*.y'],
  ['a name of an object', '[constructor]\nname = x', 'constructor.name'],
])('%s may run a program', (_, text, name) => {
  expect(checkConfig(text)).toBe(`sets ${name}, which may run a program`)
})

test('a long name is shown up to 100 characters', () => {
  expect(checkConfig(`[x]\n${'a'.repeat(200)} = y`)).toBe(`sets x.${'a'.repeat(98)}, which may run a program`)
})

test('the first key that may run a program is named', () => {
  expect(checkConfig('[user]\nname = x\n[a]\nb = c\n[d]\ne = f')).toBe('sets a.b, which may run a program')
})

test('what depends on the disk is returned', () => {
  const text = `[core]\nhooksPath = a\nworktree = "b c"\n[core]\nhookspath = ${String.raw`"d\"e"`}\n[blame]\nignoreRevsFile = f`
  expect(checkConfig(text)).toEqual({ hooks: ['a', String.raw`"d\"e"`], worktrees: ['b c'], files: ['f'] })
  expect(checkConfig('[core]\nhooksPath')).toEqual({ ...NOTHING, hooks: [''] })
})

test.each([
  ['a key before any section', 'bare = true'],
  ['a key behind its section', '[core] bare = true'],
  ['a section that does not end', '[core'],
  ['a section without a name', '[]'],
  ['a section with another character in its name', '[co_re]\nbare = true'],
  ['a name that does not end', '[branch "a]\nmerge = x'],
  ['a bracket in a name', '[branch "a]b"]\nmerge = x'],
  ['another escape in a name', String.raw`[branch "a\b"]` + '\nmerge = x'],
  ['a name that is too long', `[branch "${'a'.repeat(1001)}"]\nmerge = x`],
  ['a key that begins with a digit', '[core]\n1bare = true'],
  ['a key with another character', '[core]\nba_re = true'],
  ['an empty key', '[core]\n= true'],
  ['a value that goes on in the next line', '[user]\nname = x \\\n[core]\nbare = true'],
  ['a return within a line', '[user]\nname = x\ry'],
  ['a NUL character', '[user]\nname = x\0y'],
  ['another control character', '[user]\nname = x\x0by'],
  ['a byte order mark', '\xef\xbb\xbf[core]\nbare = true'],
  ['a deleted character', '[user]\nname = \x7f'],
])('%s is not read', (_, text) => expect(checkConfig(text)).toBe(UNREADABLE))
