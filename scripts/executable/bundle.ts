/** Makes chunks from the sources: files of code that the executable loads when it needs them. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OutputOptions, Plugin } from 'rolldown'
import { rolldown } from 'rolldown'
import { SCHEMA_ASSET } from '../../src/agent/output/schema-thread.ts'
import { TABLE_ASSET } from '../../src/storage/files/tables/table-thread.ts'
import { asFunction } from './load-chunks.ts'
import { leanPackages } from './lean-packages.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The program for PDFs. */
export const PDF_ASSET = 'pdf-program.js'

export const DIST = join(ROOT, 'dist')

/** Parts that are deleted when the executable is done. */
export const PARTS = join(DIST, 'parts')

export function makeParts(): void {
  rmSync(PARTS, { recursive: true, force: true })
  mkdirSync(PARTS, { recursive: true })
}

/**
 * The server and the command line, in chunks: what the sources load by `import()` is read and compiled at its first
 * use. Returns their folder. The plugins change the sources first.
 */
export async function bundle(plugins: readonly Plugin[] = []): Promise<string> {
  const folder = join(PARTS, 'server')
  await bundleTo(folder, 'src/main.ts', {}, plugins)
  return folder
}

/** The sources of programs that do not run in the server itself, by asset. */
const PROGRAMS = {
  [PDF_ASSET]: 'src/tools/pdf/pdf-program.mjs',
  [SCHEMA_ASSET]: 'src/agent/output/schema-program.mjs',
  [TABLE_ASSET]: 'src/storage/files/tables/table-program.mjs',
}

/** Each program is a bundle and an asset for itself, which the server never loads. Returns their files by asset. */
export async function bundlePrograms(): Promise<Record<string, string>> {
  const folder = join(PARTS, 'programs')
  const files: Record<string, string> = {}
  for (const [asset, source] of Object.entries(PROGRAMS)) {
    const own = join(folder, asset)
    await bundleTo(own, source, { codeSplitting: false })
    files[asset] = join(own, asset)
  }
  return files
}

async function bundleTo(
  folder: string,
  source: string,
  options: OutputOptions,
  plugins: readonly Plugin[] = [],
): Promise<void> {
  const bundler = await rolldown({
    input: join(ROOT, source),
    platform: 'node',
    plugins: [...plugins, leanPackages()],
    // V8 would compile each module when its chunk is loaded, whether it is used or not.
    optimization: { pifeForModuleWrappers: false },
    // A package that is missing would otherwise become an import that fails when the server starts.
    onLog: (level, log, fallback) => {
      if (log.code === 'UNRESOLVED_IMPORT') fallback('error', log)
      // Other warnings are reported: only code that runs from the sources asks where its file is.
      else if (log.code !== 'EMPTY_IMPORT_META') fallback(level, log)
    },
  })
  await bundler.write({
    dir: folder,
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Minified: 10 MB less resident memory. Names are kept for stack traces.
    minify: true,
    keepNames: true,
    comments: false,
    ...options,
  })
  await bundler.close()
  for (const file of readdirSync(folder)) {
    const path = join(folder, file)
    writeFileSync(path, inAscii(asFunction(readFileSync(path, 'utf8'))))
  }
}

/** One character beyond it makes V8 keep the whole text with two bytes for each. */
function inAscii(code: string): string {
  if (/\\[^\0-\x7f]/.test(code)) throw new Error('The bundle escapes a character that is not ASCII.')
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
