/** Texts for randomised tests. */
import * as fc from 'fast-check'

const [CODE_POINTS, FIRST_SURROGATE, SURROGATES] = [0x110000, 0xd800, 0x800]

/**
 * Texts of any characters. The same as the unit `binary` of fast-check, which first makes a table of them all: that takes
 * a second of processor time in each worker.
 */
export const anyText = (constraints: fc.StringSharedConstraints = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: character })

const character = fc
  .nat(CODE_POINTS - SURROGATES - 1)
  .map((at) => String.fromCodePoint(at < FIRST_SURROGATE ? at : at + SURROGATES))
