/** The catalogue that the server has without a file. */
import { MODEL_CATALOG, readAsset } from '../../../src/http/assets.ts'
import type { CatalogOptions } from '../../../src/llm/catalog/model-catalog.ts'
import { ModelCatalog } from '../../../src/llm/catalog/model-catalog.ts'

export const bundledCatalog = (options: Omit<CatalogOptions, 'readBundled'> = {}): ModelCatalog =>
  new ModelCatalog({ readBundled: () => readAsset(MODEL_CATALOG).toString(), ...options })
