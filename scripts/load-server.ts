/**
 * The main program of the executable: runs the bundle, with the functions that its start needs already compiled. The
 * code cache that Node makes for an executable has only the outermost function, since that code has not run yet.
 */

/** Where the bundle and its code cache are among the assets. */
export const SERVER_ASSET = 'server.js'
export const CACHE_ASSET = 'server.cache'

/** Runs what `asFunction` has made. It is passed on as text, so it uses nothing from outside of itself. */
export function loadServer(sourceName: string, cacheName: string): void {
  const { getRawAsset } = process.getBuiltinModule('node:sea')
  const { Script } = process.getBuiltinModule('node:vm')
  const { pathToFileURL } = process.getBuiltinModule('node:url')
  // V8 compiles as usual if it rejects the code cache, for example because of its flags in NODE_OPTIONS.
  const script = new Script(Buffer.from(getRawAsset(sourceName)).toString('latin1'), {
    filename: sourceName,
    cachedData: Buffer.from(getRawAsset(cacheName)),
  })
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
