/**
 * The main program of the executable: runs the bundle, with the functions that its start needs already compiled. The
 * code cache that Node makes for an executable has only the outermost function, since that code has not run yet.
 */
import { appendFileSync, readFileSync } from 'node:fs'

/**
 * Appends the bundle and its code cache to the executable, and their lengths. Not as assets: those are mapped, so
 * the 6 MB that are read once would count as resident from then on.
 */
export function appendServer(executable: string, sourceFile: string, cacheFile: string | undefined): void {
  const source = readFileSync(sourceFile)
  const cache = cacheFile === undefined ? Buffer.alloc(0) : readFileSync(cacheFile)
  const lengths = Buffer.alloc(8)
  lengths.writeUInt32LE(source.length, 0)
  lengths.writeUInt32LE(cache.length, 4)
  for (const part of [source, cache, lengths]) appendFileSync(executable, part)
}

/** Runs what `appendServer` has appended. It is passed on as text, so it uses nothing from outside of itself. */
export function loadServer(): void {
  const { closeSync, fstatSync, openSync, readSync } = process.getBuiltinModule('node:fs')
  const { Script } = process.getBuiltinModule('node:vm')
  const { pathToFileURL } = process.getBuiltinModule('node:url')
  // Also after another one has taken its name.
  const file = openSync(process.platform === 'linux' ? '/proc/self/exe' : process.execPath, 'r')
  let end = fstatSync(file).size
  const readLast = (length: number) => {
    const bytes = Buffer.allocUnsafeSlow(length)
    end -= readSync(file, bytes, 0, length, end - length)
    return bytes
  }
  const lengths = readLast(8)
  const cachedData = readLast(lengths.readUInt32LE(4))
  const source = readLast(lengths.readUInt32LE(0)).toString('latin1')
  closeSync(file)
  // V8 compiles as usual if it rejects the code cache, for example because of its flags in NODE_OPTIONS.
  const script = new Script(source, { filename: 'server.js', ...(cachedData.length > 0 && { cachedData }) })
  script.runInThisContext()({ url: pathToFileURL(process.execPath).href })
}
/** The bundle's name among the assets of an executable that nothing can be appended to. */
export const SERVER_ASSET = 'server.js'

/** Runs a bundle from the assets, without a code cache. It is passed on as text, too. */
export function loadAsset(name: string): void {
  const { getRawAsset } = process.getBuiltinModule('node:sea')
  const { Script } = process.getBuiltinModule('node:vm')
  const { pathToFileURL } = process.getBuiltinModule('node:url')
  const source = Buffer.from(getRawAsset(name)).toString('latin1')
  const script = new Script(source, { filename: name })
  script.runInThisContext()({ url: pathToFileURL(process.execPath).href })
}

/** A module without imports and exports as a function, which takes its `import.meta`. Assumes that it loads no other files. */
export function asFunction(module: string): string {
  const code = module
    .replaceAll(/\bimport\((["'`])(node:[^"'`]+)\1\)/g, 'Promise.resolve(process.getBuiltinModule($1$2$1))')
    .replaceAll('import.meta', 'importMeta')
    .replace(/export\s*\{\s*\};?\s*$/, '')
  return `'use strict';(async function(importMeta){${code}\n})`
}
