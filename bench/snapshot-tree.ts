/** A workdir of many files of 10 KB, with the structure of a large project. */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export async function makeTree(workdir: string, files: number): Promise<void> {
  for (let file = 0; file < files; file++) {
    const directory = join(workdir, `d${file % 100}`, `e${file % 1000}`)
    await mkdir(directory, { recursive: true })
    const line = Array.from({ length: 110 }, () => randomBytes(4).toString('hex')).join(' ')
    await writeFile(join(directory, `f${file}.txt`), `${line}\n`.repeat(10))
  }
  await writeFile(join(workdir, '.gitignore'), '*.log\n')
}
