/** The models that a client may see: all that the server knows, or those of the conversations that it sees. */
import type { ConversationView } from '../contract/conversation.ts'
import type { ListModels, ModelInfo, ModelPage } from '../contract/models.ts'
import { describeModel, modelsOfCatalogues } from '../llm/catalog/listed-models.ts'
import type { ModelCatalog } from '../llm/catalog/model-catalog.ts'
import { modelsOf } from './subagents/check-budget.ts'
import type { LlmDefaults } from './config/llm-origin.ts'
import type { ConversationManager } from './manager.ts'
import type { IsVisible } from './registry/listing.ts'

/** Conversations whose models a client sees, the newest first: more would have to be read from the disk each time. */
const MAX_CONVERSATIONS = 1000

export type KnownModelsDeps = {
  readonly catalog: ModelCatalog
  readonly defaults: LlmDefaults
  readonly manager: Pick<ConversationManager, 'list'>
}

export class KnownModels {
  readonly #deps: KnownModelsDeps

  constructor(deps: KnownModelsDeps) {
    this.#deps = deps
  }

  /** Returns one page, by provider and name. */
  async page({ provider, q, limit, page_id: pageId }: ListModels, isVisible?: IsVisible): Promise<ModelPage> {
    const all = isVisible ? await this.#ofConversations(isVisible) : this.#ofServer()
    const text = q?.toLowerCase()
    const isWanted = ({ provider: of, model }: ModelInfo) =>
      (provider === undefined || of === provider) && (text === undefined || model.toLowerCase().includes(text))
    const sortedModels = unique(all.filter(isWanted)).toSorted((one, other) =>
      compare(keyOfInfo(one), keyOfInfo(other)),
    )
    const rest =
      pageId === undefined ? sortedModels : sortedModels.filter((info) => compare(keyOfInfo(info), pageId) > 0)
    const items = rest.slice(0, limit)
    const last = items.at(-1)
    return { items, next_page_id: last && rest.length > limit ? keyOfInfo(last) : null }
  }

  #ofServer(): ModelInfo[] {
    const { catalog, defaults } = this.#deps
    const own = defaults.model === undefined ? undefined : describeModel(defaults, catalog)
    return own ? [own, ...modelsOfCatalogues(catalog)] : modelsOfCatalogues(catalog)
  }

  async #ofConversations(isVisible: IsVisible): Promise<ModelInfo[]> {
    const { catalog, manager } = this.#deps
    const { items } = await manager.list({ sort: 'created_at', order: 'desc', limit: MAX_CONVERSATIONS }, isVisible)
    const infos = items.flatMap((view: ConversationView) => modelsOf(view)).map((each) => describeModel(each, catalog))
    return infos.filter((info) => info !== undefined)
  }
}

/** The first one of each name: conversations may have other prices, and the newest one is the first. */
const unique = (infos: readonly ModelInfo[]): ModelInfo[] => [
  ...new Map(infos.toReversed().map((info) => [keyOfInfo(info), info])).values(),
]

const keyOfInfo = ({ provider, model }: ModelInfo): string => `${provider}/${model}`

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
