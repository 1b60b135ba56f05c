/** How the executable loads its code, also where its user may run it and not read it, as in the container image. */
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { appendChunks, appendedChunks, runChunk } from '../../scripts/executable/load-chunks.ts'

const MAIN = `const run = ${runChunk.toString()}; run('main.js', (${appendedChunks.toString()})())`

test.skipIf(process.platform !== 'linux')(
  'an executable that cannot be read takes its code from the file next to it',
  async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'chunks-'))
    const at = (name: string) => join(directory.path, name)
    await writeFile(at('main.source'), `(function(exports,require,module){console.log(require('./other.js').said)})`)
    await writeFile(at('other.source'), `(function(exports,require,module){exports.said='from the file'})`)
    const chunks = ['main', 'other'].map((name) => ({
      name: `${name}.js`,
      source: at(`${name}.source`),
      cache: undefined,
    }))
    const node = at('node')
    await copyFile(process.execPath, node)
    appendChunks(`${node}.chunks`, chunks)
    await chmod(node, 0o111)
    // Also where the tests run as root, who may read everything.
    const asUser = ['--user', '--map-user=1000', '--map-group=1000', node, '--eval', MAIN]
    const { stdout } = await promisify(execFile)('unshare', asUser)
    expect(stdout).toBe('from the file\n')
  },
)

test.skipIf(process.platform !== 'linux')('an executable without /proc says what it needs, in one line', async () => {
  const script = 'mount -t tmpfs none /proc && exec "$0" --eval "$1"'
  const run = promisify(execFile)('unshare', [
    '--user',
    '--map-root-user',
    '--mount',
    'sh',
    '-c',
    script,
    process.execPath,
    MAIN,
  ])
  await expect(run).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^agent-server: its own program cannot be read \(ENOENT.*\)\. It needs \/proc: .*\n$/,
    ),
  })
})

test('the bytes of a chunk are free before it runs', () => {
  const order: string[] = []
  vi.stubGlobal('chunkRuns', () => order.push('it runs'))
  const source = `(function(exports,require,module){globalThis.chunkRuns()})`
  runChunk('main.js', () => ({ source, release: () => void order.push('its bytes are free') }))
  vi.unstubAllGlobals()
  expect(order).toEqual(['its bytes are free', 'it runs'])
})
