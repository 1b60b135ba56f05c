/** Writes mutants into the modules that a worker of vitest loads. Node runs this before anything else in the worker. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Mutant } from './find-mutants.ts'
import { MUTANTS_VARIABLE } from './mutant-plugin.ts'
import { SWITCH, withSwitches } from './switched.ts'

const ROOT = join(import.meta.dirname, '../..')

const list = process.env[MUTANTS_VARIABLE]
const mutants = list === undefined ? [] : (JSON.parse(readFileSync(list, 'utf8')) as Mutant[])
const byUrl = Map.groupBy(mutants, ({ file }) => pathToFileURL(join(ROOT, file)).href)

registerHooks({
  load(url, context, nextLoad) {
    const own = byUrl.get(url)
    if (!own) return nextLoad(url, context)
    const source = withSwitches(readFileSync(new URL(url), 'utf8'), own, pathToFileURL(SWITCH).href)
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})
