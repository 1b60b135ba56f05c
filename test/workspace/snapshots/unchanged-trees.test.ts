/** What a look at a tree that was seen before reads again. */
import fs from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openBench } from './fixture.ts'

/** Files and directories are known when their last change is older than the resolution of times. */
const settle = (...paths: readonly string[]) => {
  const isOld = () => paths.every((path) => fs.lstatSync(path).ctimeMs < Date.now() - 100)
  return expect.poll(isOld).toBe(true)
}

test('a directory that has not changed is neither opened nor listed again', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  for (const name of ['a', 'b']) {
    fs.mkdirSync(join(workdir, name))
    fs.writeFileSync(join(workdir, name, 'file'), name)
    fs.symlinkSync('file', join(workdir, name, 'link'))
  }
  await settle(join(workdir, 'b/link'))
  const { written } = await bench.look()
  await bench.look()
  const listed = vi.spyOn(fs, 'readdirSync')
  const opens = vi.spyOn(fs, 'openSync')
  const opened = () => opens.mock.calls.map(([path]) => String(path).slice(-2)).filter((end) => /^[/][ab]$/.test(end))
  try {
    expect((await bench.look()).written).toEqual(written)
    // The workdir itself.
    expect([listed.mock.calls.length, opened()]).toEqual([1, []])
    fs.writeFileSync(join(workdir, 'a/file'), 'changed')
    expect((await bench.look()).written).not.toEqual(written)
    expect([listed.mock.calls.length, opened()]).toEqual([2, ['/a']])
    fs.writeFileSync(join(workdir, 'a/new'), 'new')
    const { entries } = (await bench.look()).trees.get(workdir)!
    expect([entries.has('a/new'), listed.mock.calls.length]).toEqual([true, 4])
  } finally {
    vi.restoreAllMocks()
  }
})

test('what is ignored is read again when the rules have changed, in directories that have not', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  fs.mkdirSync(join(workdir, 'a/deep'), { recursive: true })
  fs.mkdirSync(join(workdir, '.git/info'), { recursive: true })
  for (const name of ['one.log', 'one.txt', 'two']) fs.writeFileSync(join(workdir, 'a/deep', name), name)
  await settle(join(workdir, 'a/deep/two'))
  const ignored = async () =>
    (await bench.look()).trees.get(workdir)!.leftOut.map(({ path }) => path.replace('a/deep/', ''))
  const rules = async (file: string, text: string) => {
    fs.writeFileSync(join(workdir, file), text)
    await ignored()
    return await ignored()
  }
  expect(await ignored()).toEqual([])
  expect(await ignored()).toEqual([])
  expect(await rules('.gitignore', '*.log\n')).toEqual(['one.log'])
  expect(await rules('a/.gitignore', 'two\n')).toEqual(['one.log', 'two'])
  expect(await rules('.git/info/exclude', '*.txt\n')).toEqual(['one.log', 'one.txt', 'two'])
  expect(await rules('.gitignore', '!*.txt\n')).toEqual(['two'])
  fs.rmSync(join(workdir, 'a/.gitignore'))
  expect(await ignored()).toEqual([])
})

test('a directory that a link has replaced is a link, also if the link leads to the same directory', async () => {
  await using bench = await openBench(['outside'])
  const { workdir, place } = bench
  fs.mkdirSync(join(workdir, 'a/deep'), { recursive: true })
  fs.writeFileSync(join(workdir, 'a/deep/file'), 'file')
  await settle(join(workdir, 'a/deep/file'))
  await bench.look()
  await bench.look()
  fs.renameSync(join(workdir, 'a'), join(place, 'moved'))
  fs.symlinkSync('../moved', join(workdir, 'a'))
  const { entries } = (await bench.look()).trees.get(workdir)!
  expect([...entries].map(([path, { kind }]) => [path, kind])).toEqual([['a', 'symlink']])
})
