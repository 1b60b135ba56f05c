/** Bundles the modules of the npm package. */
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { DEPENDENCIES, ENTRIES } from './manifest.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The syntax of the browsers of 2022 and of every supported Node: `using` is rewritten. */
const TARGET = 'es2022'

/** Together, so that both entries have the same classes, such as that of errors. */
export async function bundleModules(folder: string): Promise<void> {
  const bundler = await rolldown({
    input: Object.fromEntries(ENTRIES.map(({ name, source }) => [name, join(ROOT, source)])),
    platform: 'node',
    external: (id) => DEPENDENCIES.some((name) => id === name || id.startsWith(`${name}/`)),
    transform: { target: TARGET },
    // A package that is missing would otherwise become an import that fails where the package is installed.
    onLog: (level, log, fallback) => (log.code === 'UNRESOLVED_IMPORT' ? fallback('error', log) : fallback(level, log)),
  })
  await bundler.write({ dir: folder, format: 'esm', chunkFileNames: 'chunks/[name].js', keepNames: true })
  await bundler.close()
}
