/** What the routes of the OpenAI API stand on. */
import type { LlmDefaults } from '../../conversations/config/llm-origin.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import type { Profiles } from '../../conversations/profiles/profiles.ts'
import type { StreamSlots } from '../../http/streams/stream-slots.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

export type GatewayDeps = {
  readonly manager: ConversationManager
  readonly profiles: () => Promise<Profiles>
  readonly streamSlots: StreamSlots
  readonly metrics: Pick<Metrics, 'streamOpened'>
  /** The models of the server, if clients may name some instead of profiles. */
  readonly plainModels: LlmDefaults | undefined
}
