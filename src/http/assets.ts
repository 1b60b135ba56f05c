/** The only file that knows whether we run from sources or from the executable: reads what is not code. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'

/** The folders whose files are assets, and where each lies in the sources. Paths are made on call: the executable has none of them. */
const FOLDERS: Readonly<Record<string, () => string>> = {
  openapi: () => join(import.meta.dirname, '../../openapi'),
  'swagger-ui': () => fileURLToPath(import.meta.resolve('@fastify/swagger-ui/static/')),
}

/**
 * The content of an asset such as `openapi/openapi.json`; throws when there is none of that name.
 * Never write into it: in the executable it is the executable's own read-only memory, not a copy.
 */
export function readAsset(name: string): Buffer {
  if (isSea()) return Buffer.from(getRawAsset(name))
  const [folder = '', file = ''] = name.split('/')
  const path = FOLDERS[folder]?.()
  if (path === undefined) throw new Error(`There is no asset folder ${folder}; add it to src/http/assets.ts.`)
  return readFileSync(join(path, file))
}

/** Asset name -> its file: what the build embeds. Only from sources. */
export function assetFiles(): Record<string, string> {
  const entries = Object.entries(FOLDERS).flatMap(([folder, path]) => {
    return readdirSync(path()).map((file) => [`${folder}/${file}`, join(path(), file)] as const)
  })
  return Object.fromEntries(entries)
}
