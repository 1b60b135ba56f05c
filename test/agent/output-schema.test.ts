/** Validating answers against a client's JSON Schema, in bounded time. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { SchemaThread } from '../../src/agent/output/schema-thread.ts'
import { longEnough } from '../support/long-enough.ts'
import { until } from '../support/until.ts'
import { faultOfSchema, validateOutput } from '../../src/agent/output/output-schema.ts'

const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' }, count: { type: 'integer', minimum: 1 } },
  required: ['name', 'count'],
  additionalProperties: false,
}

describe('an answer', () => {
  test.each([
    '{"name":"a","count":2}',
    '  {"name":"a","count":2}\n',
    '```json\n{"name":"a","count":2}\n```',
    '```\n{"name":"a","count":2}\n```\n',
  ])('is valid: %j', async (text) => {
    expect(await validateOutput(SCHEMA, text)).toEqual({ value: { name: 'a', count: 2 } })
  })

  test.each([
    ['Here it is: {"name":"a","count":2}', /not JSON/],
    ['', /not JSON/],
    ['{"name":"a"}', /must have required property 'count'/],
    ['{"name":"a","count":0}', /\/count must be >= 1/],
    ['{"name":"a","count":1,"x":1}', /additional properties/],
    ['['.repeat(5000), /nested more than/],
  ])('is not valid: %j', async (text, fault) => {
    expect(await validateOutput(SCHEMA, text)).toEqual({ fault: expect.stringMatching(fault) })
  })

  test('may be any JSON value', async () => {
    expect(await validateOutput({ enum: [null, 3] }, 'null')).toEqual({ value: null })
    expect(await validateOutput({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }, '"a"')).toEqual(
      {
        value: 'a',
      },
    )
  })
})

describe('a schema', () => {
  test.each([
    ['with another document', { $ref: 'https://example.com/schema.json' }, /not usable/],
    ['with a file', { $ref: 'file:///etc/passwd' }, /not usable/],
    ['with an unknown type', { type: 'thing' }, /not usable/],
    ['with a pattern that is none', { pattern: '(' }, /not usable/],
  ])('%s is refused', async (_what, schema, fault) => {
    expect(await faultOfSchema(schema)).toMatch(fault)
  })

  test('may refer to itself, and have formats and keywords of others', async () => {
    const tree = {
      $defs: { node: { properties: { left: { $ref: '#/$defs/node' }, id: { type: 'integer' } }, required: ['id'] } },
      $ref: '#/$defs/node',
      'x-note': 'mine',
      format: 'unheard-of',
    }
    expect(await faultOfSchema(tree)).toBeUndefined()
    expect(await validateOutput(tree, '{"id":1,"left":{"id":2}}')).toHaveProperty('value')
    expect(await validateOutput(tree, '{"id":1,"left":{}}')).toHaveProperty('fault')
  })

  test('that is nested too deeply is refused', async () => {
    let deep: object = {}
    for (let at = 0; at < 20_000; at++) deep = { not: deep }
    expect(await faultOfSchema(deep as Record<string, unknown>)).toBeDefined()
  })

  test.each([
    ['a pattern', { pattern: '^(a+)+$' }, `"${'a'.repeat(60)}b"`],
    [
      'references that double at each level',
      {
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, at) => [
            `d${at}`,
            at === 39
              ? { type: 'string' }
              : { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
          ]),
        ),
        $ref: '#/$defs/d0',
      },
      '"a"',
    ],
  ])('whose check would take forever is given up: %s', async (_what, schema, text) => {
    // An unbounded check would take years.
    await longEnough(0.05, async (seconds) => {
      const answer = new SchemaThread({ cpuMs: seconds * 1000 }).check({ schema, text })
      let turns = 0
      while ((await Promise.race([answer, yieldToLoop('not yet')])) === 'not yet') turns++
      expect(await answer).toEqual({ fault: 'takes too long' })
      // A blocked event loop would have a few turns before the answer, however long it takes.
      return turns > 100
    })
  })
})

describe('the thread of schemas', () => {
  test('runs from the first question until it is idle, and again with the next one', async () => {
    const thread = new SchemaThread({ idleMs: 1 })
    expect(thread.isRunning).toBe(false)
    for (const text of ['1', '2']) {
      expect(await thread.check({ schema: { type: 'integer' }, text })).toEqual({ value: Number(text) })
      await until('the end of the thread', () => Promise.resolve(!thread.isRunning))
    }
  })

  test('answers many questions at once, each its own, also after one that takes too long', async () => {
    const asked = ['"aaaa"', `"${'a'.repeat(60)}b"`, '"ba"', '3'].map((text) =>
      validateOutput({ type: 'string', pattern: '^(a+)+$' }, text),
    )
    expect(await Promise.all(asked)).toEqual([
      { value: 'aaaa' },
      { fault: expect.stringContaining('takes too long') },
      { fault: expect.stringContaining('must match pattern') },
      { fault: expect.stringContaining('must be string') },
    ])
  })

  test('waits for descriptors, however few are free, and never ends the server for lack of one', async () => {
    const child = join(import.meta.dirname, 'children/schemas-without-descriptors.ts')
    const limited = ['-c', 'ulimit -S -n 96; exec "$0" "$@"', process.execPath, child]
    const { stdout } = await promisify(execFile)('bash', limited)
    const answers = JSON.parse(stdout) as [boolean, unknown][]
    expect(answers.map(([, answer]) => answer)).toEqual(answers.map(() => ({ value: 1 })))
    expect(answers[0]).toEqual([false, { value: 1 }])
  })
})
