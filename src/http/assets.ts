/**
 * Reads files that are not code. The only file that knows whether the server runs from sources or as the executable.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'

/** Asset folders and their location in the sources. The paths are functions because the executable has none of them. */
const FOLDERS: Readonly<Record<string, () => string>> = {
  openapi: () => join(import.meta.dirname, '../../openapi'),
  'swagger-ui': () => fileURLToPath(import.meta.resolve('@fastify/swagger-ui/static/')),
}

/**
 * Returns the content of an asset such as `openapi/openapi.json`; throws if it does not exist. Never write into the
 * buffer: in the executable it is read-only memory, not a copy.
 */
export function readAsset(name: string): Buffer {
  if (isSea()) return Buffer.from(getRawAsset(name))
  const [folder = '', file = ''] = name.split('/')
  const path = FOLDERS[folder]?.()
  if (path === undefined) throw new Error(`There is no asset folder ${folder}; add it to src/http/assets.ts.`)
  return readFileSync(join(path, file))
}

/** Returns the file of each asset by name, for the build to embed. Works only from sources. */
export function assetFiles(): Record<string, string> {
  const entries = Object.entries(FOLDERS).flatMap(([folder, path]) => {
    return readdirSync(path()).map((file) => [`${folder}/${file}`, join(path(), file)] as const)
  })
  return Object.fromEntries(entries)
}
