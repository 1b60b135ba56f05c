/** What the routes of the OpenAI API stand on. */
import type { ConversationManager } from '../../conversations/manager.ts'
import type { Profiles } from '../../conversations/profiles/profiles.ts'

export type GatewayDeps = { readonly manager: ConversationManager; readonly profiles: () => Promise<Profiles> }
