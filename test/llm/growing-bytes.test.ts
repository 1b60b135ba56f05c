import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createGrowingBytes } from '../../src/llm/request/growing-bytes.ts'

const HEADS = ['', '{"model":"a","messages":[', '{"tools":[🌳]}'.repeat(700)].map((text) => Buffer.from(text))
const TAILS = ['', ']}', '🌳]}'.repeat(3000)].map((text) => Buffer.from(text))
const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 5000 }), { maxLength: 10 })
const ends = fc.record({ head: fc.constantFrom(...HEADS), tail: fc.constantFrom(...TAILS) })

describe('a text that grows', () => {
  test('is the UTF-8 of all appended text between any head and tail, whatever its length and however often it is asked for', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(texts, ends)), (rounds) => {
        const growing = createGrowingBytes()
        let whole = ''
        for (const [appended, { head, tail }] of rounds) {
          for (const text of appended) growing.append(text)
          whole += appended.join('')
          expect(growing.isEmpty).toBe(whole === '')
          const wanted = Buffer.concat([head, Buffer.from(whole), tail])
          expect(growing.between(head, tail).equals(wanted)).toBe(true)
        }
      }),
    )
  })

  test('takes no new memory for a head that it had, while there is room', () => {
    const [, head] = HEADS
    const [, tail] = TAILS
    const growing = createGrowingBytes()
    growing.append('some text')
    const before = growing.between(head!, tail!).buffer
    growing.append(', and more')
    expect(growing.between(head!, tail!).buffer).toBe(before)
  })

  test('leaves what it returned with another head as it is', () => {
    const [, one, other] = HEADS
    const growing = createGrowingBytes()
    growing.append('some text')
    const first = growing.between(one!, TAILS[1]!)
    const text = first.toString()
    growing.between(other!, TAILS[1]!)
    growing.append('more')
    growing.between(other!, TAILS[1]!)
    expect(first.toString()).toBe(text)
  })
})
