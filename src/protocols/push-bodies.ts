/** What the deliveries of callbacks contain that clients of protocols have made. Loaded with the first one. */
import type { MakeBody } from '../webhooks/dispatcher.ts'

export const PUSH_BODIES: Readonly<Record<string, MakeBody>> = {
  a2a: async (...delivery) => (await import('./a2a/push-body.ts')).pushBody(...delivery),
}
