/** Long texts are redacted in slices: the same result, and turns for other work in between. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { effort } from '../support/patience.ts'
import { growthOfSteps } from '../support/turns.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { SLICE_CHARS } from '../../src/security/redaction/stream-redactor.ts'

const SECRET = `it's a "secret" 🌳 of these tests`

function redactorWithSecret() {
  const redactor = createRedactor()
  redactor.set('TOKEN', SECRET)
  redactor.setServerKey('SERVER', 'a-key-that-no-agent-may-learn')
  return redactor
}

const spellings = [
  SECRET,
  JSON.stringify(SECRET).slice(1, -1),
  encodeURIComponent(SECRET),
  Buffer.from(SECRET).toString('base64'),
  'a-key-that-no-agent-may-learn',
]

test('a secret anywhere around the border of a slice is redacted as in one piece', async () => {
  const { redact, redactInSlices } = redactorWithSecret()
  const place = fc.integer({ min: SLICE_CHARS - 120, max: SLICE_CHARS + 20 })
  await fc.assert(
    fc.asyncProperty(
      place,
      fc.constantFrom(...spellings),
      fc.constantFrom(' ', '🌳', '\\', 'x'),
      async (at, said, fill) => {
        const text = fill.repeat(at).slice(0, at) + said + fill.repeat(SLICE_CHARS)
        expect(await redactInSlices(text)).toBe(redact(text))
      },
    ),
    { numRuns: effort(25, 2000) },
  )
})

test('other work has many turns while a long hostile text is redacted', async () => {
  const { redactInSlices } = redactorWithSecret()
  let turns = 0
  const ticking = setInterval(() => (turns += 1), 1)
  await redactInSlices(`'"'`.repeat(1_000_000))
  clearInterval(ticking)
  expect(turns).toBeGreaterThan(5)
})

test.each(['abc'.repeat(9), 'ab\nab\nab\nab\n'])(
  'a text that is full of a secret is redacted as in one piece: %j',
  async (secret) => {
    const redactor = createRedactor()
    redactor.set('TOKEN', secret)
    const text = `${secret.slice(3)} ${secret.repeat(3000)}x ${`${secret} `.repeat(3000)}${secret.slice(0, -1)}`
    const whole = redactor.redact(text)
    expect(await redactor.redactInSlices(text)).toBe(whole)
    expect(whole).not.toContain(secret)
    expect(await redactor.redactCutOffInSlices(text)).toBe(redactor.redactCutOff(text))
  },
)

test('no step of redacting grows with the number of secrets in a text', async () => {
  const { set, redactInSlices } = createRedactor()
  set('TOKEN', 'topsecret')
  const text = 'topsecret'.repeat(120_000)
  expect(await growthOfSteps((times) => redactInSlices(text.repeat(times)))).toBeLessThan(3)
})

test('two long texts at a time do not meddle with each other', async () => {
  const { redactInSlices } = redactorWithSecret()
  const text = (fill: string) => fill.repeat(SLICE_CHARS * 3) + SECRET
  const [a, b] = await Promise.all(['a ', 'b '].map((fill) => redactInSlices(text(fill))))
  expect(a).toBe(`${'a '.repeat(SLICE_CHARS * 3)}<secret:TOKEN>`)
  expect(b).toBe(`${'b '.repeat(SLICE_CHARS * 3)}<secret:TOKEN>`)
})
