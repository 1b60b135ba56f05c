/** Builds an executable that has mutants in it, for the tests that start one. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { assemble, publish, stripped } from '../executable/assemble.ts'
import { bundle, bundlePrograms, makeParts } from '../executable/bundle.ts'
import { compile } from '../executable/code-caches.ts'
import type { Mutant } from './find-mutants.ts'
import { mutantPlugin } from './mutant-plugin.ts'

export async function buildWithMutants(root: string, mutants: readonly Mutant[], executable: string): Promise<void> {
  makeParts()
  const chunks = await compile(await bundle([mutantPlugin(root, mutants)]))
  const programs = await bundlePrograms()
  mkdirSync(dirname(executable), { recursive: true })
  publish(assemble({ node: stripped(process.execPath), chunks, programs }), executable)
}
