/** Swaps a name between a directory, or a file, and a link, as fast as it can, until it is killed. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'

const [path, target, kind] = process.argv.slice(2) as [string, string, 'directory' | 'file']
const [real, link] = [`${path}.real`, `${path}.link`]

function prepare(): void {
  for (const each of [path, real, link]) rmSync(each, { recursive: true, force: true })
  if (kind === 'directory') mkdirSync(real)
  writeFileSync(kind === 'directory' ? `${real}/canary` : real, 'harmless')
  symlinkSync(target, link)
}

function swap(): void {
  renameSync(real, path)
  renameSync(path, real)
  renameSync(link, path)
  renameSync(path, link)
}

prepare()
process.send?.('ready')
for (;;) {
  try {
    swap()
  } catch {
    // What is tested has taken something away, or put something there.
    for (let tries = 0; tries < 100; tries++) {
      try {
        prepare()
        break
      } catch {
        continue
      }
    }
  }
}
