/** Opens what the server knows about models. */
import type { Config } from '../config/config.ts'
import { MODEL_CATALOG, readAsset } from '../http/assets.ts'
import { EndpointLimits } from '../llm/catalog/endpoint-limits.ts'
import { ModelCatalog } from '../llm/catalog/model-catalog.ts'

/** Throws a `ConfigError` if the file of the operator cannot be used. */
export async function openCatalog({ modelCatalog: path }: Config): Promise<ModelCatalog> {
  const file =
    path === undefined ? undefined : await (await import('../config/model-catalog.ts')).readModelCatalog(path)
  const readBundled = () => readAsset(MODEL_CATALOG).toString()
  return new ModelCatalog({ readBundled, file, limits: new EndpointLimits() })
}
