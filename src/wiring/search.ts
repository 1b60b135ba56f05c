/** The search, which is loaded when it is used first. */
import { Problem } from '../contract/problem.ts'
import type { ConversationSearch, ConversationSearchDeps } from '../conversations/search/search.ts'

export function createSearch(
  isOn: boolean,
  deps: ConversationSearchDeps,
): AsyncDisposable & Pick<ConversationSearch, 'page'> {
  let loadedSearch: Promise<ConversationSearch> | undefined
  const load = async () => new (await import('../conversations/search/search.ts')).ConversationSearch(deps)
  return {
    async page(query, isVisible) {
      if (!isOn)
        throw new Problem('search_off', 'This server has no search: its operator has set OPENHANDS_SEARCH=false.')
      return await (await (loadedSearch ??= load())).page(query, isVisible)
    },
    async [Symbol.asyncDispose]() {
      await (await loadedSearch)?.[Symbol.asyncDispose]()
    },
  }
}
