/** The text of slash commands: what is filled in, and what arguments cannot do. */
import { describe, expect, test } from 'vitest'
import { commandParts, parseCommandCall } from '../../src/state/command-text.ts'

const textOf = (template: string, args: string) =>
  commandParts(template, args)
    .map((part) => (part.kind === 'shell' ? `<${part.command}>` : part.kind === 'file' ? `{${part.path}}` : part.text))
    .join('')

test.each([
  ['/review', { name: 'review', args: '' }],
  ['  /git:push  main "a b" ', { name: 'git:push', args: 'main "a b"' }],
  ['/a\nb c', { name: 'a', args: 'b c' }],
  ['/etc/passwd is a file', undefined],
  ['/ x', undefined],
  ['see /review', undefined],
  ['', undefined],
])('%j is a call of %j', (text, call) => {
  expect(parseCommandCall(text)).toEqual(call)
})

describe('arguments', () => {
  test.each([
    ['All: $ARGUMENTS.', 'a "b c"', 'All: a "b c".'],
    ['$1-$2-$3.', `a "b c"`, 'a-b c-.'],
    ['$1-$2.', `"a b" c`, 'a b-c.'],
    ['$1-$2.', `x='a b'y c`, 'x=a by-c.'],
    ['$1', '$2 x', '$2'],
    ['$ARGUMENTS', '$1 $ARGUMENTS', '$1 $ARGUMENTS'],
    ['Nothing.', 'more', 'Nothing.\n\nARGUMENTS: more'],
    ['Nothing.', '', 'Nothing.'],
    ['$10 $ARGUMENTSX', 'a', 'a0 $ARGUMENTSX'],
    [`$1`, `'a`, `'a`],
  ])('in %j with %j', (template, args, text) => {
    expect(textOf(template, args)).toBe(text)
  })

  test('add no commands for the shell and no files', () => {
    expect(commandParts('Do $ARGUMENTS.', '!`rm -rf /` @/etc/passwd')).toEqual([
      { kind: 'text', text: 'Do !`rm -rf /` @/etc/passwd.' },
    ])
  })

  test('are part of the commands and paths that the text has', () => {
    expect(textOf('!`git log $1` @src/$2.', 'main a.ts')).toBe('<git log main> {src/a.ts}')
  })
})

test('a text with many marks is read in linear time', () => {
  // A square of this length would take longer than a test may.
  for (const mark of ['!`', '@', '"', "'", '$', '`', ' @a'])
    expect(commandParts(mark.repeat(1_000_000), mark.repeat(1_000_000)).length, mark).toBeGreaterThan(0)
})
