import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { append, message, readAll, seqsOf, tempDirectory } from './fixtures.ts'

const child = (name: string) => join(import.meta.dirname, 'children', name)

test('acknowledged events survive kill -9, and the log continues without a gap', async () => {
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

test('on a full disk nothing of a batch is stored, and the log continues as soon as there is room', async () => {
  await using directory = await tempDirectory()
  const id = uuid7()
  // A limit on the size of files fails a write as a full disk does, having taken a part of it; and needs no root.
  const command = `ulimit -S -f 16; exec "$0" "$@"`
  const script = [process.execPath, child('fill-up.ts'), directory.path, id]
  // The code that Node keeps for later starts is longer than that, and is written after the last line of the script.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const { stdout } = await promisify(execFile)('bash', ['-c', command, ...script], { env })
  expect(JSON.parse(stdout)).toEqual({
    steps: [
      { outcomes: ['stored 1'], isTruncated: true },
      { outcomes: ['storage_full'], isTruncated: true },
      { outcomes: ['stored 2', 'storage_full', 'storage_full'], isTruncated: true },
      { outcomes: ['stored 3'], isTruncated: true },
    ],
    read: [1, 2, 3],
    shown: [1, 2, 3],
    repaired: null,
    failed: false,
  })
  expect(await readdir(join(directory.path, id))).toEqual(['events.jsonl'])
})

test('a log that cannot be opened for lack of descriptors stores nothing, and continues as soon as one is free', async () => {
  await using directory = await tempDirectory()
  const command = `ulimit -S -n 64; exec "$0" "$@"`
  const script = [process.execPath, child('without-descriptors.ts'), directory.path, uuid7()]
  const { stdout } = await promisify(execFile)('bash', ['-c', command, ...script])
  const round = ['unavailable', 'EMFILE', 'EMFILE', 'unavailable', 'done']
  expect(JSON.parse(stdout)).toEqual({ outcomes: ['done', ...round, ...round], seqs: [1, 2, 3], failed: false })
})
