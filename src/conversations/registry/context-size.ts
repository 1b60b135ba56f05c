/** The window of the model in the view of a conversation. */
import type { ConversationView } from '../../contract/conversation.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'

export function withContextSize(view: ConversationView, catalog: ModelCatalog): ConversationView {
  const size = catalog.windowOf(view.llm_config)
  return size === undefined ? view : { ...view, context: { ...view.context, size } }
}
