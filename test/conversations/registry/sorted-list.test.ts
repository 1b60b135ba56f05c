import { expect, test } from 'vitest'
import { SortedList } from '../../../src/conversations/registry/sorted-list.ts'
import { createRandom } from '../../support/random.ts'
import { effort } from '../../support/patience.ts'

const ascending = (a: number, b: number) => a - b

test('is in order after any number of items have come and gone, and finds the place of each', () => {
  for (let seed = 1; seed <= effort(20, 1000); seed++) {
    const random = createRandom(seed)
    const model = new Set(Array.from({ length: random.below(5) }, () => random.below(50)))
    const list = new SortedList(ascending, model)
    for (let step = 0; step < 100; step++) {
      const item = random.below(50)
      if (model.has(item) || random.below(3) === 0) {
        model.delete(item)
        list.delete(item)
      } else {
        model.add(item)
        list.add(item)
      }
    }
    const expected = [...model].sort(ascending)
    expect(Array.from({ length: list.length }, (_, place) => list.at(place))).toEqual(expected)
    for (let item = 0; item <= 50; item++) {
      const place = expected.findIndex((other) => other >= item)
      expect(list.firstPlace((other) => other >= item)).toBe(place === -1 ? expected.length : place)
    }
  }
})
