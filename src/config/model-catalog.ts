/** Reads the file of OPENHANDS_MODEL_CATALOG, in the form of models.dev or of LiteLLM. */
import { constants, open } from 'node:fs/promises'
import { codeOf } from '../lib/error-code.ts'
import { CatalogFault } from '../llm/catalog/entry-builder.ts'
import { readLiteLlm } from '../llm/catalog/litellm-form.ts'
import type { ModelEntries } from '../llm/catalog/model-facts.ts'
import { isOfModelsDev, readModelsDev } from '../llm/catalog/models-dev-form.ts'
import { ConfigError } from './environment.ts'

const MAX_BYTES = 8 * 1024 * 1024

/** Throws a `ConfigError`: a wrong number would be a wrong limit of cost. */
export async function readModelCatalog(path: string): Promise<ModelEntries> {
  const file = parse(await readText(path), path)
  try {
    const entries = isOfModelsDev(file) ? readModelsDev(file) : readLiteLlm(file)
    if (entries.size === 0) throw refusal(path, 'has no models')
    return entries
  } catch (error) {
    throw error instanceof CatalogFault ? refusal(path, `cannot be used. ${error.message}`) : error
  }
}

async function readText(path: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = await file.stat()
    if (!stat.isFile()) throw refusal(path, 'is not a file')
    if (stat.size > MAX_BYTES) throw refusal(path, `has more than ${MAX_BYTES} bytes`)
    return await file.readFile('utf8')
  } catch (error) {
    throw error instanceof ConfigError ? error : refusal(path, `cannot be read (${codeOf(error)})`)
  }
}

function parse(text: string, path: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refusal(path, 'is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refusal(path, 'is not a JSON object')
  return { ...value }
}

const refusal = (path: string, why: string) => new ConfigError(`OPENHANDS_MODEL_CATALOG: ${path} ${why}.`)
