/** What a look trusts of an earlier one, and what it does not. */
import fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { openBench } from './fixture.ts'

const FILES = 2000

afterEach(() => void vi.useRealTimers())

const settle = (path: string) => expect.poll(() => fs.lstatSync(path).ctimeMs < Date.now() - 100).toBe(true)

test('a look that is ended is continued by the next one, which reads only what is missing', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  for (let file = 0; file < FILES; file++) {
    fs.mkdirSync(join(workdir, `d${file % 40}`), { recursive: true })
    fs.writeFileSync(join(workdir, `d${file % 40}`, `f${file}`), `file ${file}`)
  }
  await settle(join(workdir, `d${(FILES - 1) % 40}`, `f${FILES - 1}`))
  const ending = new AbortController()
  let names = 0
  bench.onName = () => ++names === FILES / 2 && ending.abort()
  bench.limitTime(ending.signal)
  await expect(bench.look()).rejects.toThrow('aborted')
  bench.onName = () => {}
  bench.limitTime(new AbortController().signal)

  const opens = vi.spyOn(fs, 'openSync')
  const { written, trees } = await bench.look()
  const readAgain = opens.mock.calls.filter(([path]) => /\/f\d+$/.test(String(path))).length
  opens.mockRestore()
  expect(readAgain).toBeGreaterThan(0)
  expect(readAgain).toBeLessThan(FILES * 0.75)
  expect(trees.get(workdir)!.entries.size).toBe(FILES + 40)
  // All of it is in the store.
  const objects = await bench.store.run(['rev-list', '--objects', '--missing=print', written.commit])
  expect(objects.toString()).not.toContain('?')
})

test('what a look has stored before it was ended, and a repack has removed, is read again', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  for (let file = 0; file < 500; file++) fs.writeFileSync(join(workdir, `f${file}`), `file ${file}`)
  await settle(join(workdir, 'f499'))
  const ending = new AbortController()
  let names = 0
  bench.onName = () => ++names === 250 && ending.abort()
  bench.limitTime(ending.signal)
  await expect(bench.look()).rejects.toThrow('aborted')
  bench.onName = () => {}
  bench.limitTime(new AbortController().signal)
  await bench.store.run(['repack', '-a', '-d', '-q'])
  const { written } = await bench.look()
  const objects = await bench.store.run(['rev-list', '--objects', '--missing=print', written.commit])
  expect(objects.toString()).not.toContain('?')
})

test('a clock that was set back makes all files be read again: times say nothing then', async () => {
  await using bench = await openBench()
  const { workdir, store } = bench
  fs.writeFileSync(join(workdir, 'a'), 'one')
  fs.writeFileSync(join(workdir, 'b'), 'two')
  await settle(join(workdir, 'b'))
  const { entries } = (await bench.look()).trees.get(workdir)!
  await bench.reopen()
  // As if both files had changed since then, and got the same times.
  const cache = join(store.directory, 'look.json')
  const [a, b] = ['a', 'b'].map((name) => entries.get(name)!.blob) as [string, string]
  const swapped = fs.readFileSync(cache, 'utf8').replaceAll(a, '@@').replaceAll(b, a).replaceAll('@@', b)
  const blobNow = async () => (await bench.look()).trees.get(workdir)!.entries.get('a')!.blob
  fs.writeFileSync(cache, swapped)
  await bench.reopen({ saves: false })
  expect(await blobNow(), 'the cache counts').toBe(b)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 10_000 })
  expect(await blobNow(), 'this process has seen the clock go back').toBe(a)
  vi.useRealTimers()

  fs.writeFileSync(cache, swapped.replace(/"at":\d+/, `"at":${Date.now() + 1e6}`))
  await bench.reopen({ saves: false })
  expect(await blobNow(), 'the look is from the future').toBe(a)
})
