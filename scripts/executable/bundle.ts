/** From the sources to chunks: files of code that the executable loads when it needs them. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OutputOptions } from 'rolldown'
import { rolldown } from 'rolldown'
import { asFunction } from './load-chunks.ts'
import { leanPackages } from './lean-packages.ts'

const ROOT = join(import.meta.dirname, '../..')
export const DIST = join(ROOT, 'dist')

/** Parts that are deleted when the executable is done. */
export const PARTS = join(DIST, 'parts')

export function makeParts(): void {
  rmSync(PARTS, { recursive: true, force: true })
  mkdirSync(PARTS, { recursive: true })
}

/**
 * The server and the command line, in chunks: what the sources load by `import()` is read and compiled at its first
 * use. Returns their folder.
 */
export async function bundle(): Promise<string> {
  const folder = join(PARTS, 'server')
  await bundleTo(folder, 'src/main.ts', {})
  return folder
}

/** The program for PDFs is a separate bundle and asset, which the server never reads. Returns its file. */
export async function bundlePdfProgram(): Promise<string> {
  const folder = join(PARTS, 'pdf')
  await bundleTo(folder, 'src/tools/pdf/pdf-program.mjs', { codeSplitting: false })
  return join(folder, 'pdf-program.js')
}

async function bundleTo(folder: string, source: string, options: OutputOptions): Promise<void> {
  const bundler = await rolldown({
    input: join(ROOT, source),
    platform: 'node',
    plugins: [leanPackages()],
    // V8 would compile each module when its chunk is loaded, whether it is used or not.
    optimization: { pifeForModuleWrappers: false },
    // A package that is missing would otherwise become an import that fails when the server starts.
    onLog: (level, log, fallback) => {
      if (log.code === 'UNRESOLVED_IMPORT') fallback('error', log)
      // Only code that runs from the sources asks where its file is.
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
