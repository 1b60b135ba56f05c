import { expect, test } from 'vitest'
import { decidesFiles, isLocale, isSafeLocale, isSafeVariable } from '../../src/policy/shell/safe-variables.ts'

const partOf = (names: readonly string[], claim: (name: string) => boolean): readonly string[] => names.filter(claim)

test('variables with a plain lower-case name, and a few known ones, change nothing of what a command does', () => {
  const safe = ['a', 'ab1', 'LANG', 'LC_ALL', 'NO_COLOR', 'TZ']
  const others = ['A', 'aB', 'a_b', 'histchars', 'LC_', 'LC_a', 'XLC_A', 'LC_A1', 'PATH', '1a', '_a', '']
  expect(partOf([...safe, ...others], isSafeVariable)).toEqual(safe)
})

test('bash reads lines in the charset of LANG and LC_*, and only UTF-8 and ASCII are safe', () => {
  expect(partOf(['LANG', 'LC_CTYPE', 'LANGUAGE', 'XLANG', 'LC_', 'LC_a'], isLocale)).toEqual(['LANG', 'LC_CTYPE'])
  const safe = ['', 'C', 'POSIX', 'en_US.UTF-8', 'C.utf8']
  expect(partOf([...safe, 'zh_CN.GBK', 'en_US', 'xUTF-8', 'C.UTF-8.GBK', '../C.UTF-8'], isSafeLocale)).toEqual(safe)
  expect(isSafeLocale(undefined)).toBe(false)
})

test('some variables decide which files a command line means', () => {
  const deciding = ['HOME', 'CDPATH', 'GIT_DIR', 'GIT_CONFIG_GLOBAL', 'GIT_OBJECT_DIRECTORY', 'GIT_INDEX_FILE']
  expect(partOf([...deciding, 'HOMES', 'XHOME', 'XGIT_DIR', 'GIT_AUTHOR_NAME'], decidesFiles)).toEqual(deciding)
})
