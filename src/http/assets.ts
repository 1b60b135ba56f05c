/**
 * Reads files that are not code. The only file that knows whether the server runs from sources, as the executable or from
 * the npm package.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'

/** What the page of the API loads, and nothing else of its package. */
export const SWAGGER_FILES = ['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png'] as const

/** What the server knows about models by itself. */
export const MODEL_CATALOG = 'catalog/models.json'

const rootFolder = (): string => join(import.meta.dirname, '../..')

/** The build of the dashboard when the server runs from the sources. */
export const pageFolder = (): string => join(rootFolder(), 'dist/ui')

/** Asset folders and their location in the sources. The paths are functions because the executable has none of them. */
const FOLDERS: Readonly<Record<string, () => string>> = {
  catalog: () => join(rootFolder(), 'catalog'),
  openapi: () => join(rootFolder(), 'openapi'),
  // The npm package has a copy.
  'swagger-ui': () =>
    existsSync(join(rootFolder(), 'swagger-ui'))
      ? join(rootFolder(), 'swagger-ui')
      : fileURLToPath(import.meta.resolve('@fastify/swagger-ui/static/')),
  // The npm package has a copy.
  ui: () => (existsSync(join(rootFolder(), 'ui')) ? join(rootFolder(), 'ui') : pageFolder()),
}

/**
 * Returns the content of an asset such as `openapi/openapi.json`; throws if it does not exist. Never write into the
 * buffer: in the executable it is read-only memory, not a copy.
 */
export function readAsset(name: string): Buffer {
  if (isSea()) return Buffer.from(getRawAsset(name))
  return readFileSync(pathOf(name))
}

/** Returns the file of each asset by name, for the build to embed or copy. Works only from sources. */
export function assetFiles(): Record<string, string> {
  const names = [
    MODEL_CATALOG,
    ...readdirSync(join(rootFolder(), 'openapi')).map((file) => `openapi/${file}`),
    ...SWAGGER_FILES.map((file) => `swagger-ui/${file}`),
    ...readdirSync(pageFolder()).map((file) => `ui/${file}`),
  ]
  return Object.fromEntries(names.map((name) => [name, pathOf(name)]))
}

/** Throws for a folder that is not one of assets. */
function pathOf(name: string): string {
  const [folder = '', file = ''] = name.split('/')
  const path = FOLDERS[folder]?.()
  if (path === undefined) throw new Error(`There is no asset folder ${folder}; add it to src/http/assets.ts.`)
  return join(path, file)
}
