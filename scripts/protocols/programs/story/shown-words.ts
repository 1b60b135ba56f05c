/** The table of the documentation that says what each protocol sends in the one conversation. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PAGE = join(import.meta.dirname, '../../../../docs/protocols.md')

/** The name of a protocol -> the step -> words that the client must get in it. */
export type ShownWords = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>

export function readShownWords(): ShownWords {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split('\n## One conversation\n')
  const [head = [], ...rows] = section.split('\n').flatMap((line) => (line.startsWith('| ') ? [cellsOf(line)] : []))
  return new Map(
    head
      .slice(1)
      .map((protocol, at) => [
        protocol,
        new Map(
          rows.map(([step = '', ...cells]) => [
            step,
            [...(cells[at] ?? '').matchAll(/`(.+?)`/g)].map((each) => each[1]!),
          ]),
        ),
      ]),
  )
}

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())

/** A word that is not sent is a mistake of the table. */
export function assertShown(words: readonly string[], sent: string): void {
  for (const word of words) assert.ok(sent.includes(word), `${word} is not sent: ${sent}`)
}
