/** Prompts on stdin, as files, programs and careless people write them. */
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../src/cli/command-line/usage-error.ts'
import { readPrompts, requireFitting } from '../../src/cli/headless/read-prompts.ts'

const never = new AbortController().signal
const BOM = '\ufeff'
const hello = { role: 'user', content: 'hello' }

async function read(
  pieces: readonly (string | Buffer)[],
  inputFormat: 'text' | 'stream-json' = 'stream-json',
  resume?: 'latest',
): Promise<unknown[]> {
  const stdin = Readable.from(pieces.map((piece) => Buffer.from(piece)))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a pipe only the stream is used
  const { lines } = await readPrompts(
    { prompt: undefined, inputFormat, ask: 'nobody', resume },
    stdin as NodeJS.ReadStream,
    never,
  )
  return (await Array.fromAsync(lines)).map((line) => ('content' in line ? line.content : line))
}

describe('lines of JSON', () => {
  test.each([
    ['both forms of a message', [JSON.stringify(hello), '\n', JSON.stringify({ type: 'user', message: hello })]],
    ['a byte order mark', [`${BOM}${JSON.stringify(hello)}\n${JSON.stringify(hello)}`]],
    ['blank lines and CRLF', [`\r\n\n${JSON.stringify(hello)}\r\n  \n${JSON.stringify(hello)}\n\n`]],
  ])('%s', async (_, pieces) => {
    expect(await read(pieces)).toEqual(['hello', 'hello'])
  })

  test('a character that arrives in two pieces is whole', async () => {
    const line = Buffer.from(JSON.stringify({ ...hello, content: 'grüße' }))
    const cut = line.indexOf(0xc3) + 1
    expect(await read([line.subarray(0, cut), line.subarray(cut)])).toEqual(['grüße'])
  })

  test.each([
    ['nothing', [], 'there is no prompt on stdin.'],
    ['only blank lines', ['\n\n  \n'], 'there is no prompt on stdin.'],
    ['no JSON', ['\nhello\n'], 'line 2 of stdin is not a message'],
    ['no message', ['{"type":"user"}\n'], 'line 1 of stdin is not a message'],
    ['a run without a message', ['{"type":"run"}\n'], 'a new conversation begins with a message'],
    ['binary data', [Buffer.from([1, 0, 2, 10])], 'stdin contains binary data'],
  ])('%s is refused', async (_, pieces, sentence) => {
    await expect(read(pieces)).rejects.toThrow(sentence)
    await expect(read(pieces)).rejects.toBeInstanceOf(UsageError)
  })
})

describe('text', () => {
  test('is taken as it is, without a byte order mark', async () => {
    expect(await read([`${BOM}hel`, 'lo\n'], 'text')).toEqual(['hello\n'])
  })

  test.each([
    ['white space', [' \n'], 'the prompt is empty.'],
    ['binary data', [Buffer.alloc(3)], 'stdin contains binary data'],
    ['endless text', Array.from({ length: 65 }, () => Buffer.alloc(1024 ** 2, 'x')), 'larger than 64 MiB'],
  ])('%s is refused', async (_, pieces, sentence) => {
    await expect(read(pieces, 'text')).rejects.toThrow(sentence)
  })
})

test('a resumed conversation needs no prompt', async () => {
  expect(await read([], 'text', 'latest')).toEqual([])
  expect(await read(['\n'], 'stream-json', 'latest')).toEqual([])
  expect(await read(['{"type":"run"}\n'], 'stream-json', 'latest')).toEqual([{ run: true }])
})

test('a prompt that the server would refuse for its size is refused before', () => {
  expect(() => requireFitting({ content: 'ü'.repeat(440) }, 1000)).not.toThrow()
  expect(() => requireFitting({ content: 'ü'.repeat(500) }, 1000)).toThrow('the server accepts 1000 bytes')
})

test('the signal ends the wait for stdin', async () => {
  const interrupted = new AbortController()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a pipe only the stream is used
  const stdin = new Readable({ read() {} }) as NodeJS.ReadStream
  const { readFirst } = await readPrompts(
    { prompt: undefined, inputFormat: 'stream-json', ask: 'nobody', resume: undefined },
    stdin,
    interrupted.signal,
  )
  const reading = readFirst()
  interrupted.abort(new Error('interrupted'))
  await expect(reading).rejects.toThrow('interrupted')
})
