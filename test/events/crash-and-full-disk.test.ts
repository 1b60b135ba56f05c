import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createJsonlStore } from '../../src/events/jsonl-store.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { append, message, readAll, seqsOf, tempDirectory } from './fixtures.ts'

const child = (name: string) => join(import.meta.dirname, 'children', name)

test('what was acknowledged survives kill -9, and goes on without a gap', async () => {
  await using directory = await tempDirectory()
  for (let round = 0; round < 3; round++) {
    const id = uuid7()
    const server = spawn(process.execPath, [child('append-until-killed.ts'), directory.path, id])
    let output = ''
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.length > 600 + round * 1000) server.kill('SIGKILL')
    })
    await once(server, 'close')
    const acknowledged = Math.max(...output.split('\n').slice(0, -1).map(Number))
    expect(acknowledged).toBeGreaterThan(50)

    const { log } = await createJsonlStore({ directory: directory.path }).open(id)
    expect(log.head).toBeGreaterThanOrEqual(acknowledged)
    const next = await append(log, message('on'))
    expect(seqsOf(await readAll(log))).toEqual(Array.from({ length: next[0]!.seq }, (_, i) => i + 1))
    await log.close()
  }
})

test('without room nothing of the batch is left, and the log goes on as soon as there is some', async () => {
  await using directory = await tempDirectory()
  const id = uuid7()
  // A limit on the size of files fails a write as a full disk does, having taken a part of it; and needs no root.
  const command = `ulimit -S -f 16; exec "$0" "$@"`
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    command,
    process.execPath,
    child('fill-up.ts'),
    directory.path,
    id,
  ])
  const { outcomes, read, shown, repaired, failed } = JSON.parse(stdout) as Record<string, unknown>
  expect(outcomes).toEqual([
    expect.stringMatching(/^stored 1, \d+ bytes$/),
    expect.stringMatching(/^storage_full, \d+ bytes$/),
    expect.stringMatching(/^stored 2, \d+ bytes$/),
    // These two went to disk in one write.
    expect.stringMatching(/^storage_full, \d+ bytes$/),
    expect.stringMatching(/^storage_full, \d+ bytes$/),
    expect.stringMatching(/^stored 3, \d+ bytes$/),
  ])
  const sizes = (outcomes as string[]).map((outcome) => Number(/(\d+) bytes/.exec(outcome)![1]))
  expect([sizes[1], sizes[3], sizes[4]]).toEqual([sizes[0], sizes[2], sizes[2]])
  expect({ read, shown, repaired, failed }).toEqual({
    read: [1, 2, 3],
    shown: [1, 2, 3],
    repaired: null,
    failed: false,
  })
  expect(await readdir(join(directory.path, id))).toEqual(['events.jsonl'])
})
