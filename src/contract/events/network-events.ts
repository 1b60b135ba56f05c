/** The events of the network policy. */
import { z } from 'zod'
import { NetworkTarget } from '../values/network.ts'
import { byEnvironment, Envelope } from './envelope.ts'

export const NetworkAccess = Envelope.extend({
  ...byEnvironment,
  type: z.literal('NetworkAccess'),
  host: z.string().describe('`*`: further hosts that are not listed individually.'),
  port: NetworkTarget.port.optional(),
  allowed: z.boolean(),
  reason: z.string(),
  count: z.int().positive().describe('Number of connections with this decision in the last seconds.'),
})
  .meta({ id: 'NetworkAccess' })
  .describe('Logged when the policy has `log`.')
