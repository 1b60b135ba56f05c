/** Programs of tests as bundles: to load a hundred modules from the sources takes more processor time than what they do. */
import { mkdir, rename } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Plugin } from 'rolldown'
import { rolldown } from 'rolldown'
import { inject } from 'vitest'
import { codeOf } from '../../src/lib/error-code.ts'
import { until } from './until.ts'

/** What a process that runs the program needs. */
export type BundledProgram = { readonly path: string; readonly env: Readonly<Record<string, string>> }

/** Each is made once in a test run, by the worker that needs it first, and removed at the end of the run. */
export async function bundledProgram(source: string): Promise<BundledProgram> {
  const name = basename(source, '.ts')
  const folder = join(inject('temporary'), `program-${name}`)
  const made = join(folder, 'made')
  if (await isFirst(folder)) {
    await bundle(source, join(folder, 'new'))
    await rename(join(folder, 'new'), made)
  } else await until(`the bundle of ${name}`, async () => existsSync(made))
  return { path: join(made, `${name}.mjs`), env: { NODE_COMPILE_CACHE: join(folder, 'cache') } }
}

async function isFirst(folder: string): Promise<boolean> {
  try {
    await mkdir(folder)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

async function bundle(source: string, folder: string): Promise<void> {
  const bundler = await rolldown({ input: source, platform: 'node', plugins: [PLACES] })
  await bundler.write({ dir: folder, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' })
  await bundler.close()
}

/** Large packages that few of the processes load: to bundle them takes as long as all the rest. */
const RARE = /^(?:@agentclientprotocol|@anthropic-ai|@modelcontextprotocol|htmlparser2|openai|pg|undici|unpdf)(?:\/|$)/

/** A module that finds a file beside itself finds it beside its source. */
const PLACES: Plugin = {
  name: 'places-of-sources',
  resolveId: (id) =>
    // As a URL: `#` and `?` in a path would be parts of one.
    RARE.test(id) ? { id: import.meta.resolve(id), external: true } : undefined,
  transform(code, id) {
    const places: Readonly<Record<string, string>> = { dirname: dirname(id), filename: id, url: pathToFileURL(id).href }
    return code.replaceAll(/\bimport\.meta\.(dirname|filename|url)\b/g, (_, place: string) =>
      JSON.stringify(places[place]),
    )
  },
}
