/** The models of a list as a person chooses among them: those that are likely to be meant first, with window and price. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { MODEL_CATALOG, readAsset } from '../../http/assets.ts'
import { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import { listedWindow } from '../../llm/catalog/model-list.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import { vendorAt } from '../../llm/endpoints/vendors.ts'
import type { ListOption } from './choice-list.ts'

/** `model`: as a configuration with this endpoint writes it. */
export type ModelOption = ListOption & { readonly model: string }

const MAX_MODELS = 2000
const MAX_NAME_CHARS = 300

type LlmWithEndpoint = LlmConfig & { readonly base_url: string }

/** Models that do not answer with text, or not to text. */
const FOR_OTHER_WORK =
  /embed|rerank|moderation|whisper|transcri|tts|speech|audio|realtime|image|dall-e|sora|video|veo|imagen|ocr/i

export const isForOtherWork = (id: string): boolean => FOR_OTHER_WORK.test(id)

/** `config` is that of the endpoint, without a model. */
export function modelOptions(models: readonly ListedModel[], config: LlmWithEndpoint): ModelOption[] {
  const catalog = new ModelCatalog({ readBundled: () => readAsset(MODEL_CATALOG).toString() })
  const options = models.slice(0, MAX_MODELS).flatMap((listedModel) => {
    // Gemini lists them with their path.
    const id = (listedModel.id ?? listedModel.name ?? '').replace(/^models\//, '')
    if (id === '' || id.length > MAX_NAME_CHARS) return []
    const namedConfig = { ...config, model: configuredName(id, config) }
    const price = catalog.knownPrice(namedConfig)?.value
    const window = listedWindow(listedModel) ?? catalog.knownWindow(namedConfig)?.value
    const detail = [
      window === undefined ? undefined : `${shortCount(window)} tokens`,
      price && `${perMillion(price.input)} in, ${perMillion(price.output)} out`,
    ]
    const rank = isForOtherWork(id) ? 2 : price === undefined ? 1 : 0
    return [
      {
        model: namedConfig.model,
        label: id,
        detail: detail.filter(Boolean).join(' · '),
        rank,
        created: createdAt(listedModel),
      },
    ]
  })
  return options.toSorted((one, other) => one.rank - other.rank || other.created - one.created)
}

/** The first part of a name can look like the vendor of a configuration, which is removed: then another one is put in front. */
function configuredName(id: string, config: LlmWithEndpoint): string {
  const names = [id, `openai/${id}`, `${vendorAt(config.base_url)?.id}/${id}`]
  return names.find((model) => endpointOf({ ...config, model }).model === id) ?? id
}

/** OpenAI says it. Anthropic lists the latest model first. */
const createdAt = ({ created }: ListedModel): number => (typeof created === 'number' ? created : 0)

function shortCount(tokens: number): string {
  if (tokens < 1000) return String(tokens)
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${Number((tokens / 1_000_000).toFixed(1))}M`
}

/** Three digits are enough to compare. */
const perMillion = (usdOfToken: number): string => `$${Number((usdOfToken * 1e6).toPrecision(3))}`
