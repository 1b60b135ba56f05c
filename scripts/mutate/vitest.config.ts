/** The tests as they are, on code with mutants in it, in the order in which they are given. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defineConfig, mergeConfig } from 'vitest/config'
import type { TestSpecification } from 'vitest/node'
import tests from '../../vitest.config.ts'
import type { Mutant } from './find-mutants.ts'
import { mutantPlugin, MUTANTS_VARIABLE } from './mutant-plugin.ts'

const ROOT = join(import.meta.dirname, '../..')

const list = process.env[MUTANTS_VARIABLE]
const mutants = list === undefined ? [] : (JSON.parse(readFileSync(list, 'utf8')) as Mutant[])

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
    plugins: [mutantPlugin(ROOT, mutants)],
    test: {
      setupFiles: [join(import.meta.dirname, 'note-reach.ts')],
      sequence: { sequencer: GivenOrder },
      // What another run has put there has other mutants in it, or none.
      fsModuleCache: false,
    },
  }),
)
