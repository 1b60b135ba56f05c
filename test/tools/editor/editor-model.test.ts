import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { openEditor } from './editor-fixture.ts'
import { effort } from '../../support/patience.ts'

/**
 * The editor as one would explain it: a text is a list of characters, a line end being one character of two kinds.
 * To the eye of whoever edits, both kinds are the same; what is written new gets the kind of its surroundings.
 */
type Char = string
const EOLS = ['\n', '\r\n']
const isEol = (char: Char | undefined) => char !== undefined && EOLS.includes(char)
const looks = (char: Char) => (isEol(char) ? '\n' : char)
const chars = (text: string): Char[] => text.match(/\r\n|./gsu) ?? []

const kindAt = (text: readonly Char[], at: number): Char =>
  text.slice(at).find(isEol) ?? text.slice(0, at).findLast(isEol) ?? '\n'
const inKind = (kind: Char, added: readonly Char[]) => added.map((char) => (isEol(char) ? kind : char))

function replaced(text: readonly Char[], before: readonly Char[], after: readonly Char[]): Char[] | undefined {
  if (before.join('') === after.join('')) return undefined
  const places = text.flatMap((_, at) =>
    before.every((char, i) => text[at + i] !== undefined && looks(text[at + i]!) === char) ? [at] : [],
  )
  if (places.length !== 1 || !before.length) return undefined
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail))
    tail++
  const [from, to] = [places[0]! + head, places[0]! + before.length - tail]
  return [
    ...text.slice(0, from),
    ...inKind(kindAt(text, from), after.slice(head, after.length - tail)),
    ...text.slice(to),
  ]
}

function inserted(text: readonly Char[], line: number, added: readonly Char[]): Char[] | undefined {
  const lines: Char[][] = []
  for (const [at, char] of text.entries()) {
    if (at === 0 || isEol(text[at - 1])) lines.push([])
    lines.at(-1)!.push(char)
  }
  if (line > lines.length) return undefined
  const before = lines.slice(0, line).flat()
  const kind = line > 0 && isEol(before.at(-1)) ? before.at(-1)! : kindAt(text, Math.max(0, before.length - 1))
  const whole = inKind(kind, isEol(added.at(-1)) ? added.slice(0, -1) : added)
  const after = lines.slice(line).flat()
  return before.length && !isEol(before.at(-1)) ? [...before, kind, ...whole] : [...before, ...whole, kind, ...after]
}

const FILES = ['a', 'b'] as const
const file = fc.constantFrom(...FILES)
const text = fc.array(fc.constantFrom('x', 'y', '\t', 'ü', '😀', '😁', '\n', '\n', '\r\n', '\r\n'), { maxLength: 16 })
const written = fc.array(fc.constantFrom('x', 'y', ' ', 'ü', '😀', '😁', '\n'), { maxLength: 6 })

/** Where `old_str` is taken from: a part of what the file has then, so that it is found at all. */
const part = fc.record({ from: fc.nat(20), length: fc.integer({ min: 1, max: 6 }) })

/** How much of its beginning and its end stays in `new_str`, as models repeat what is around a change. */
const kept = fc.record({ head: fc.nat(4), tail: fc.nat(4) })

const step = fc.oneof(
  fc.record({ command: fc.constant('create' as const), file, text }),
  fc.record({ command: fc.constant('str_replace' as const), file, part, written, kept, random: fc.option(written) }),
  fc.record({ command: fc.constant('insert' as const), file, line: fc.nat(6), written }),
  fc.record({ command: fc.constant('undo_edit' as const), file }),
  fc.record({ command: fc.constant('restart' as const) }),
)

test('whatever is edited, the files are what a plain model of the editor says, and every edit can be taken back', async () => {
  const { call, reopen, at, bytes } = await openEditor()
  let run = 0
  const steps = fc.array(step, { minLength: 4, maxLength: 16 })
  await fc.assert(
    fc.asyncProperty(text, steps, async (first, taken) => {
      run++
      const path = (name: string) => at(`${run}-${name}`)
      // What each file was, oldest first; the last is what it is. Undefined: it is not there.
      const pasts = new Map<string, (readonly Char[] | undefined)[]>(FILES.map((name) => [name, [undefined]]))
      const all = [{ command: 'create' as const, file: 'a' as const, text: first }, ...taken]
      for (const each of all) {
        if (each.command === 'restart') {
          reopen()
          continue
        }
        const past = pasts.get(each.file)!
        const now = past.at(-1)
        const name = path(each.file)
        switch (each.command) {
          case 'create': {
            const { error } = await call({ command: 'create', path: name, file_text: each.text.join('') })
            expect(error === undefined).toBe(now === undefined)
            if (!now) past.push(chars(each.text.join('')))
            break
          }
          case 'str_replace': {
            const old =
              each.random ??
              (now ?? [])
                .slice(each.part.from % Math.max(1, now?.length ?? 0))
                .slice(0, each.part.length)
                .map(looks)
            const added = [
              ...old.slice(0, each.kept.head),
              ...each.written,
              ...old.slice(Math.max(0, old.length - each.kept.tail)),
            ]
            const next = now && replaced(now, old, added)
            const { error } = await call({
              command: 'str_replace',
              path: name,
              old_str: old.join(''),
              new_str: added.join(''),
            })
            expect(error === undefined, error?.message).toBe(next !== undefined)
            if (next) past.push(next)
            break
          }
          case 'insert': {
            const next = now && inserted(now, each.line, each.written)
            const { error } = await call({
              command: 'insert',
              path: name,
              insert_line: each.line,
              new_str: each.written.join(''),
            })
            expect(error === undefined, error?.message).toBe(next !== undefined)
            if (next) past.push(next)
            break
          }
          case 'undo_edit': {
            const { error } = await call({ command: 'undo_edit', path: name })
            expect(error === undefined, error?.message).toBe(past.length > 1)
            if (past.length > 1) past.pop()
            break
          }
        }
        for (const other of FILES) {
          const content = await bytes(`${run}-${other}`).catch(() => undefined)
          expect(content?.toString()).toBe(pasts.get(other)!.at(-1)?.join(''))
        }
      }
      for (const other of FILES) {
        for (const past = pasts.get(other)!; past.length > 1; past.pop()) {
          expect((await bytes(`${run}-${other}`)).toString()).toBe(past.at(-1)!.join(''))
          expect((await call({ command: 'undo_edit', path: path(other) })).error).toBeUndefined()
        }
        expect((await call({ command: 'view', path: path(other) })).error?.message).toMatch(/does not exist/)
      }
    }),
    { numRuns: effort(15, 3000) },
  )
})
