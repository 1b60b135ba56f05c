import { expect, test } from 'vitest'
import { trendOf } from './trend.ts'

const NOISE = [0.3, -0.4, 0.1, 0.5, -0.2, -0.5, 0.2]

test('the rise of a series is that of the line through it', () => {
  const { rise, noise } = trendOf([10, 12, 14, 16, 18])
  expect(rise).toBeCloseTo(8)
  expect(noise).toBeCloseTo(0)
})

test('a level series that varies rises by less than its noise', () => {
  const { rise, noise } = trendOf(NOISE.map((each) => 60 + each))
  expect(Math.abs(rise)).toBeLessThan(noise)
})

test('one high measurement is noise, and a rise in each step is not', () => {
  const outlier = trendOf([60, 60, 60, 60, 60, 60, 70])
  expect(outlier.rise).toBeLessThan(outlier.noise * 1.3)
  const steady = trendOf(NOISE.map((each, at) => 60 + at + each))
  expect(steady.rise).toBeGreaterThan(steady.noise * 3)
})

test('fewer than three measurements have no trend', () => {
  expect(() => trendOf([1, 2])).toThrow('at least 3 measurements')
})
