import { describe, expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { jailPathOfUrl, parseJailPath, refuseToMake } from '../../../src/files/jail/jail-path.ts'

const refused = (work: () => unknown) => {
  try {
    work()
    return 'taken'
  } catch (error) {
    return error instanceof Problem ? error.code : error
  }
}

describe('a path', () => {
  test.each([
    ['', []],
    ['.', []],
    ['a', ['a']],
    ['a/b', ['a', 'b']],
    ['./a/./b/', ['a', 'b']],
    ['...', ['...']],
    ['..a/b..', ['..a', 'b..']],
    ['.hidden', ['.hidden']],
    ['a b/ü/😀', ['a b', 'ü', '😀']],
    ['100%', ['100%']],
    ['a\nb', ['a\nb']],
    ['~/$HOME', ['~', '$HOME']],
    ['a\\b', ['a\\b']],
    ['..\\a', ['..\\a']],
    ['%2e%2e/a%2fb', ['%2e%2e', 'a%2fb']],
    [' /a ', [' ', 'a ']],
    ['x'.repeat(255), ['x'.repeat(255)]],
  ])('%j is %j', (text, names) => {
    expect(parseJailPath(text).names).toEqual(names)
  })

  test.each([
    '/',
    '/a',
    '//a',
    '..',
    '../a',
    'a/..',
    'a/../b',
    'a//b',
    'a//',
    'a\0b',
    '\0',
    'a\ud800',
    'x'.repeat(256),
    'ü'.repeat(128),
    'a/'.repeat(2049),
  ])('%j is refused', (text) => {
    expect(refused(() => parseJailPath(text))).toBe('unsafe_path')
  })

  test('says whether it was written as a directory', () => {
    expect(parseJailPath('a/').endsInSlash).toBe(true)
    expect(parseJailPath('a').endsInSlash).toBe(false)
  })
})

describe('of a URL', () => {
  const base = '/conversations/id/files/'

  test.each([
    ['a/b', ['a', 'b']],
    ['a%2Fb', ['a', 'b']],
    ['a%20b?path=x/../y', ['a b']],
    ['%E2%82%AC#x', ['€']],
    ['100%25', ['100%']],
    ['a+b', ['a+b']],
    ['', []],
    ['a/', ['a']],
    ['a%5cb', ['a\\b']],
    ['a%255cb', ['a%5cb']],
    ['%252e%252e%252fx', ['%2e%2e%2fx']],
    ['%252Fetc', ['%2Fetc']],
    ['a%2500', ['a%00']],
    ['%25252e%25252e', ['%252e%252e']],
  ])('%s is decoded once', (url, names) => {
    expect(jailPathOfUrl(base + url, 3).names).toEqual(names)
    expect(jailPathOfUrl(`http://host:80${base}${url}`, 3).names, 'as a whole URL').toEqual(names)
  })

  test.each([
    '..',
    '%2e%2e',
    '.%2e/x',
    '..%2fx',
    '%2fetc/passwd',
    '/etc/passwd',
    'a%00',
    'a%2f%2fb',
    '%c0%ae%c0%ae/x',
    '%ff',
    '%zz',
  ])('%s is refused', (url) => {
    expect(refused(() => jailPathOfUrl(base + url, 3))).toBe('unsafe_path')
  })
})

describe('to be created', () => {
  test.each(['a\\b', '..\\', 'C:\\a', 'a%00b', '%2e%2e', '%2E', 'a%2fb', 'a%5Cb', '%252e', '%25252F'])(
    'the name %j is refused',
    (name) => expect(refused(() => refuseToMake(name))).toBe('unsafe_path'),
  )

  test.each(['a', '...', '100%', '50%25', 'a b', ' ', '%', '%20', '%zz', '😀'])('the name %j is fine', (name) => {
    expect(refused(() => refuseToMake(name))).toBe('taken')
  })
})
