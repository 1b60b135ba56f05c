/** docs/chat.md has exactly the commands and keys that /help lists. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { COMMANDS, KEYS } from '../../../src/cli/chat/commands/slash-commands.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/chat.md'), 'utf8')

const rowsOf = (heading: string) =>
  PAGE.split(`## ${heading}\n`)[1]!
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) => line.split('|')[1]!.replaceAll('`', '').trim())

test('every command in /help is documented, and no other', () => {
  expect(rowsOf('Commands')).toEqual(COMMANDS.map(({ name, argument = '' }) => `/${name} ${argument}`.trimEnd()))
})

test('every key in /help is documented, and no other', () => {
  expect(rowsOf('Keys')).toEqual(KEYS.map(([key]) => key))
})
