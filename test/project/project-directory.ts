/** A directory with files for the tests of project settings, and the loader on it. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { LoadOptions } from '../../src/project/load-project.ts'
import { loadProject } from '../../src/project/load-project.ts'

export type ProjectDirectory = AsyncDisposable & {
  readonly path: string
  readonly write: (files: Readonly<Record<string, string | Buffer>>) => Promise<void>
  readonly load: (options?: Partial<LoadOptions>) => ReturnType<typeof loadProject>
}

export async function makeProject(files: Readonly<Record<string, string | Buffer>> = {}): Promise<ProjectDirectory> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'project-test-')))
  const write: ProjectDirectory['write'] = async (given) => {
    for (const [name, content] of Object.entries(given)) {
      await mkdir(dirname(join(path, name)), { recursive: true })
      await writeFile(join(path, name), content)
    }
  }
  await write(files)
  return {
    path,
    write,
    load: (options = {}) =>
      loadProject({
        sources: ['project'],
        isTrusted: false,
        workdir: path,
        userDirectory: undefined,
        forbidden: [],
        homes: ['/home/user'],
        rules: undefined,
        mode: undefined,
        canonicalRule: (text) => text,
        ...options,
      }),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

/** A Markdown file with frontmatter. */
export const markdown = (fields: string, body = 'Do it.') => `---\n${fields}\n---\n${body}\n`
