import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { execa } from 'execa'
import { expect, test, vi } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { endPreparation, NODE_FLAGS, prepareProcess } from '../src/process-settings.ts'

test.each(['start', 'demo'] as const)('npm run %s starts Node with the flags of the executable', (name) => {
  expect(manifest.scripts[name]).toContain(`exec ./node_modules/.bin/node ${NODE_FLAGS.join(' ')} src/main.ts`)
})

test('a signal opens no debugger, by which other programs of the user could read the keys', async () => {
  const script = `process.kill(process.pid, 'SIGUSR1'); console.log(fs.readFileSync('/proc/self/status', 'utf8'))`
  const handlesIt = async (flags: readonly string[]) => {
    const { stdout } = await execa(process.execPath, [...flags, '--eval', script])
    return (BigInt(`0x${/^SigCgt:\s*(\w+)$/m.exec(stdout)![1]}`) & (1n << BigInt(constants.signals.SIGUSR1 - 1))) > 0n
  }
  expect(await handlesIt([]), 'Node does by default').toBe(true)
  expect(await handlesIt(NODE_FLAGS)).toBe(false)
})

// Without types: Node cannot remove them under `--jitless`.
const SETTINGS = stripTypeScriptTypes(readFileSync(join(import.meta.dirname, '../src/process-settings.ts'), 'utf8'))
const HOT_LOOP = `${SETTINGS}
  prepareProcess()
  endPreparation()
  const sum = (count) => { let all = 0; for (let i = 0; i < count; i++) all += i; return all }
  for (let round = 0; round < 20_000; round++) sum(100)
  console.log('done')`

test.each([[[]], [['--jitless']]])('a process with the flags %j survives the end of its start', async (flags) => {
  const { stdout } = await execa(process.execPath, [...flags, '--input-type=module', '--eval', HOT_LOOP])

  expect(stdout).toBe('done')
})

test('the flags of a process that was not prepared stay as they are', () => {
  const before = cachedDataVersionTag()
  vi.stubEnv('UV_THREADPOOL_SIZE', '4')

  endPreparation()
  expect(cachedDataVersionTag()).toBe(before)
  prepareProcess()
  expect(cachedDataVersionTag()).not.toBe(before)
  endPreparation()
  expect(cachedDataVersionTag()).toBe(before)
  vi.unstubAllEnvs()
})

test('what a start keeps is taken from small pools, and everything after it from those of Node', () => {
  const before = Buffer.poolSize
  vi.stubEnv('UV_THREADPOOL_SIZE', '4')
  prepareProcess()
  expect(Buffer.poolSize).toBeLessThan(before)
  endPreparation()
  expect(Buffer.poolSize).toBe(before)
  vi.unstubAllEnvs()
})
