import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { blocksBackward, blocksForward } from '../../../../src/storage/files/log/line-blocks.ts'
import { LogFile } from '../../../../src/storage/files/log/log-file.ts'

/** Far more than one block, with lines of different lengths, and one that is longer than a block. */
const LINES = Array.from({ length: 6000 }, (_, n) => `${n} ${'x'.repeat(n === 3000 ? 1_500_000 : (n * 37) % 2000)}`)

async function* linesOf(blocks: ReturnType<typeof blocksForward>): AsyncGenerator<string[]> {
  for await (const { bytes, starts, ends } of blocks)
    yield starts.map((start, n) => bytes.toString('utf8', start, ends[n]))
}

test('scans that run at the same time, in both orders, each see every line', async () => {
  const home = await mkdtemp(join(tmpdir(), 'line-blocks-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const text = LINES.map((line) => `${line}\n`).join('')
  await writeFile(join(home, 'log'), text)
  const file = new LogFile(join(home, 'log'), { idleMs: 60_000, onIdle: () => {} })
  onTestFinished(() => file.close(new Error('The test is over.')))
  const forward = () => Array.fromAsync(linesOf(blocksForward(file, 0, text.length)))
  const backward = () => Array.fromAsync(linesOf(blocksBackward(file, 0, text.length)))
  for (const round of [1, 2]) {
    const [one, other, third] = await Promise.all([forward(), forward(), backward()])
    expect(one.flat(), `round ${round}`).toEqual(LINES)
    expect(other.flat(), `round ${round}`).toEqual(LINES)
    expect(third.toReversed().flat(), `round ${round}`).toEqual(LINES)
  }
})
