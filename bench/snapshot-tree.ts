/** A workdir of many files, with the structure of a large project. */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** `bytes`: the size of each file, about. */
export async function makeTree(workdir: string, files: number, bytes: number): Promise<void> {
  const words = Math.round(bytes / 90)
  for (let file = 0; file < files; file++) {
    const directory = join(workdir, `d${file % 100}`, `e${file % 1000}`)
    await mkdir(directory, { recursive: true })
    const line = Array.from({ length: words }, () => randomBytes(4).toString('hex')).join(' ')
    await writeFile(join(directory, `f${file}.txt`), `${line}\n`.repeat(10))
  }
  await writeFile(join(workdir, '.gitignore'), '*.log\n')
}
