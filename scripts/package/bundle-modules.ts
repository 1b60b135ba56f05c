/** Bundles the modules of the npm package, with all packages that they import but zod. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { assetFiles } from '../../src/http/assets.ts'
import { provideDashboard } from '../ui/build-page.ts'
import { DEPENDENCIES, ENTRIES } from './manifest.ts'

const ROOT = join(import.meta.dirname, '../..')

/** `using` is rewritten. Browsers of 2024 and Node 22 have all the rest. */
const TARGET = 'es2022'

/** Two folders deep, as `src/http` is: the code finds its assets in `../../openapi`, `../../catalog` and `../../swagger-ui`. */
const CHUNKS = 'lib/server'
/** Each is a module for itself: another process or thread loads it by its path. */
const PROGRAMS = {
  'pdf-program': 'src/tools/pdf',
  'schema-program': 'src/agent/output',
  'table-program': 'src/storage/files/tables',
}

const NEWER = join(import.meta.dirname, 'node-22.ts')
const PONYFILLS = {
  AsyncDisposableStack: [NEWER, 'AsyncDisposableStack'],
  DisposableStack: [NEWER, 'DisposableStack'],
  'RegExp.escape': [NEWER, 'escapeText'],
} satisfies Record<string, [string, string]>

/** Writes them into a folder, and what the server reads next to them. Returns the folders of the packages in them. */
export async function bundleModules(folder: string): Promise<string[]> {
  const input = Object.fromEntries(ENTRIES.map(({ name, source }) => [name, join(ROOT, source)]))
  // Together, so that both entries have the same classes, such as that of errors.
  const modules = await bundle(input, folder)
  const programs: string[] = []
  for (const [name, source] of Object.entries(PROGRAMS))
    programs.push(...(await bundle({ [name]: join(ROOT, source, `${name}.mjs`) }, join(folder, CHUNKS))))
  const page = await provideDashboard()
  const assets = Object.entries(assetFiles())
  for (const [name, file] of assets) {
    mkdirSync(join(folder, dirname(name)), { recursive: true })
    copyFileSync(file, join(folder, name))
  }
  return [
    ...new Set([...modules, ...programs, ...page, ...assets.map(([, file]) => file)].flatMap(packageOf)),
  ].toSorted()
}

async function bundle(input: Record<string, string>, dir: string): Promise<string[]> {
  const bundler = await rolldown({
    input,
    platform: 'node',
    external: (id) => DEPENDENCIES.some((name) => id === name || id.startsWith(`${name}/`)),
    transform: { target: TARGET, inject: PONYFILLS },
    // A package that is missing would otherwise become an import that fails where the package is installed.
    onLog: (level, log, fallback) => (log.code === 'UNRESOLVED_IMPORT' ? fallback('error', log) : fallback(level, log)),
  })
  const { output } = await bundler.write({
    dir,
    format: 'esm',
    entryFileNames: ({ name }) => (name in PROGRAMS ? '[name].mjs' : '[name].js'),
    chunkFileNames: `${CHUNKS}/[name].js`,
  })
  await bundler.close()
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}

/** The folder of the package that a module belongs to. */
function packageOf(path: string): string[] {
  const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path) ?? []
  return folder === undefined ? [] : [folder]
}
