/** A command that prints the key of the model: real programs, which may be slow, hostile or wrong. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KeyCommand } from '../../src/llm/key-command.ts'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { until } from '../support/until.ts'

const { signal: NEVER } = new AbortController()
const KEY = 'a-printed-key-1'

let home: string
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'key-command-')))
})
afterAll(() => rm(home, { recursive: true, force: true }))

const command = (script: string) => new KeyCommand(['bash', '-c', script], HostEnvironment.plain)
const keyOf = (script: string) => command(script).key(NEVER)
/** Adds a line to this file at each run. */
const counted = (file: string) => `echo run >> ${file}; N=$(wc -l < ${file}); `
const runsIn = async (file: string) => (await readFile(file, 'utf8')).split('\n').length - 1
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds
const json = (value: object) => `echo '${JSON.stringify(value)}'`

describe('a key command', () => {
  test.each([
    [`echo ${KEY}`, KEY],
    [`printf '\\n ${KEY}\\r\\n\\n'`, KEY],
    [json({ key: KEY }), KEY],
    [json({ key: KEY, expires_at: '2999-01-01T00:00:00Z', more: [] }), KEY],
    [`echo warning >&2; ${json({ key: KEY, expires_at: 99_999_999_999 })}`, KEY],
  ])('that runs %s prints the key', async (script, key) => expect(await keyOf(script)).toBe(key))

  test('runs once for requests that wait at the same time, and for those of the next minutes', async () => {
    const file = join(home, 'once')
    const keys = command(`${counted(file)} sleep 0.2; echo key-number-$N`)
    const waiting = await Promise.all([1, 2, 3, 4].map(() => keys.key(NEVER)))
    expect(new Set(waiting)).toEqual(new Set(['key-number-1']))
    expect(await keys.key(NEVER)).toBe('key-number-1')
    expect(await runsIn(file)).toBe(1)
  })

  test('runs again before its key expires, and after the endpoint has refused it', async () => {
    const file = join(home, 'again')
    const keys = command(`${counted(file)} ${json({ key: 'key-of-1-second', expires_at: inSeconds(3) })}`)
    await keys.key(NEVER)
    await until('the key to be renewed', async () => {
      await keys.key(NEVER)
      return (await runsIn(file)) >= 2
    })
    const others = command(`${counted(join(home, 'refused'))} echo key-number-$N`)
    const first = await others.key(NEVER)
    // Two requests were refused with the same key: one run brings the next one.
    expect(await Promise.all([others.keyAfter(first, NEVER), others.keyAfter(first, NEVER)])).toEqual([
      'key-number-2',
      'key-number-2',
    ])
    expect(await others.keyAfter(first, NEVER)).toBe('key-number-2')
    expect([...others.printed]).toEqual(['key-number-1', 'key-number-2'])
  })

  test('runs on for the others when one request is aborted', async () => {
    const keys = command(`until [ -e ${home}/go ]; do sleep 0.02; done; echo ${KEY}`)
    const aborted = new AbortController()
    const one = keys.key(aborted.signal)
    const other = keys.key(NEVER)
    aborted.abort(new Error('no longer wanted'))
    await expect(one).rejects.toThrow('no longer wanted')
    await writeFile(join(home, 'go'), '')
    expect(await other).toBe(KEY)
  })
})

describe('it is an error of the type auth', () => {
  test.each([
    ['exit 7', 'exit code 7.'],
    [`echo ${KEY}; echo first >&2; printf 'last \\e[31mline\\n\\n' >&2; exit 1`, 'exit code 1: last  [31mline.'],
    ['kill -TERM $$', 'it was ended by SIGTERM.'],
    ['true', 'it printed nothing.'],
    ['echo not logged in >&2', 'it printed nothing: not logged in.'],
    ['echo one; echo two', 'it printed more than one line; it must print the key and nothing else.'],
    [`printf 'key-with-\\e[31m-color'`, 'a character that cannot be sent'],
    [`printf 'key-with-\\0-null'`, 'a character that cannot be sent'],
    ['echo two words', 'a space in it'],
    ['echo short', 'it printed a key with less than 8 characters'],
    ['echo {not json', 'not JSON'],
    [json({ token: KEY }), 'it printed JSON that is not'],
    [json({ key: KEY, expires_at: 'tomorrow' }), 'it printed JSON that is not'],
    [json({ key: KEY, expires_at: 1 }), 'the key that it printed has expired'],
    [json({ key: KEY, expires_at: '2001-01-01T00:00:00+01:00' }), 'the key that it printed has expired'],
    ['head -c 70000 /dev/zero | tr "\\0" k', 'it printed more than 64 KiB.'],
    ['exec cat /dev/zero', 'it printed more than 64 KiB.'],
    ['yes complaint >&2 & sleep 0.1; kill $!; exit 3', 'exit code 3: complaint.'],
  ])('when it runs %s', async (script, message) => {
    const failure = await keyOf(script).catch((error: unknown) => error)
    expect(failure).toMatchObject({ type: 'auth', retryable: false, message: expect.stringContaining(message) })
    expect(String(failure)).not.toContain(KEY)
    // oxlint-disable-next-line no-control-regex -- that is the point
    expect(String(failure)).not.toMatch(/[\u0000-\u001F]/)
  })

  test('when the program does not exist', async () => {
    const missing = new KeyCommand(['there-is-no-such-program'], HostEnvironment.plain)
    await expect(missing.key(NEVER)).rejects.toMatchObject({ type: 'auth', message: expect.stringContaining('ENOENT') })
  })

  test('when it takes longer than ten seconds, and nothing of it is left', { timeout: 60_000 }, async () => {
    const file = join(home, 'pid')
    await expect(keyOf(`sleep 600 & echo $! > ${file}; sleep 600`)).rejects.toThrow('it took longer than 10 s')
    await until('the child to end', async () => !existsSync(`/proc/${(await readFile(file, 'utf8')).trim()}`))
  })
})

test('what a command leaves running does not hold the key back, and is ended', async () => {
  const file = join(home, 'left')
  expect(await keyOf(`sleep 600 & echo $! > ${file}; echo ${KEY}`)).toBe(KEY)
  await until('the child to end', async () => !existsSync(`/proc/${(await readFile(file, 'utf8')).trim()}`))
})

test('a failure shows no key that was printed before', async () => {
  const keys = command(`if [ -e ${home}/bad ]; then echo "refused: ${KEY}" >&2; exit 1; fi; echo ${KEY}`)
  await keys.key(NEVER)
  await writeFile(join(home, 'bad'), '')
  const failure = await keys.keyAfter(KEY, NEVER).catch(String)
  expect(failure).toContain('exit code 1: refused: <secret:LLM_API_KEY_COMMAND>')
})

test.each([
  ['a trace of it', `set -x; echo ${KEY}; { set +x; } 2>/dev/null; exit 1`],
  ['its beginning at the end of a long line', `echo ${KEY}; printf '%0495d ${KEY}' 0 >&2; exit 1`],
  ['a key in JSON', `${json({ key: KEY })}; echo key=${KEY} >&2; exit 1`],
  ['a key and a longer one with it', `echo ${KEY} ${KEY}-2; echo ${KEY}-2 >&2; exit 1`],
])('a failure shows no key of the run that has failed: %s', async (_, script) => {
  const failure = await keyOf(script).catch(String)
  expect(failure).toContain('exit code 1: ')
  expect(failure).not.toContain(KEY.slice(0, 4))
  expect(failure).not.toContain('-2')
})
