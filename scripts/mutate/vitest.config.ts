/** The tests as they are, on code with mutants in it, in the order in which they are given. */
import { join, relative } from 'node:path'
import { defineConfig, mergeConfig } from 'vitest/config'
import type { TestSpecification } from 'vitest/node'
import tests from '../../vitest.config.ts'

const ROOT = join(import.meta.dirname, '../..')

class GivenOrder {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files
  }

  sort(files: TestSpecification[]): TestSpecification[] {
    const place = ({ moduleId }: TestSpecification): number => process.argv.indexOf(relative(ROOT, moduleId))
    return files.toSorted((one, other) => place(one) - place(other))
  }
}

export default mergeConfig(
  tests,
  defineConfig({
    root: ROOT,
    test: {
      setupFiles: [join(import.meta.dirname, 'note-reach.ts')],
      sequence: { sequencer: GivenOrder },
      execArgv: ['--import', new URL('load-mutants.ts', import.meta.url).href],
    },
  }),
)
