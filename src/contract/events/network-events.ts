/** The events of the network policy. */
import { z } from 'zod'
import { NetworkTarget } from '../network.ts'
import { byEnvironment, Envelope, InRun } from './envelope.ts'

export const NetworkRequest = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('NetworkRequest'),
  request_id: z.uuid(),
  ...NetworkTarget,
})
  .meta({ id: 'NetworkRequest' })
  .describe('A connection to an unlisted host waits for a decision.')

export const NetworkDecision = Envelope.extend({
  source: z.enum(['user', 'environment']),
  type: z.literal('NetworkDecision'),
  request_id: z.uuid(),
  ...NetworkTarget,
  behavior: z.enum(['allow', 'deny']),
  decided_by: z
    .enum(['user', 'timeout', 'policy', 'server_restart'])
    .describe('`policy`: the policy was changed. `timeout`: no decision in time.'),
}).meta({ id: 'NetworkDecision' })

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
