/** The network policy of a conversation on the wire, and decisions about its pending requests. */
import { z } from 'zod'

export const NetworkMode = z
  .enum(['none', 'allowlist', 'open'])
  .describe(
    '`open`: the network of the server’s host. `allowlist`: only the listed hosts, through the server’s proxy. `none`: no network.',
  )
  .meta({ id: 'NetworkMode' })
export type NetworkMode = z.infer<typeof NetworkMode>

export const MAX_ENTRIES = 1000
const Entries = z.array(z.string().min(1).max(300)).max(MAX_ENTRIES)

export const NetworkPolicy = z
  .strictObject({
    mode: NetworkMode,
    allow: Entries.optional().describe(
      'Hosts that may be reached: `api.example.com`, `*.example.org` (its subdomains), `*`, or an address, each with `:port` or `:*` (every port). Without a port: 80 and 443.',
    ),
    deny: Entries.optional().describe('Hosts that are refused without asking, even if `allow` lists them.'),
    ask: z.boolean().optional().describe('Whether a connection to an unlisted host waits for a decision of the user.'),
    log: z.boolean().optional().describe('Whether the log records each decision as a `NetworkAccess` event.'),
  })
  .refine(({ mode, ...rest }) => mode === 'allowlist' || Object.values(rest).every((value) => value === undefined), {
    error: 'allow, deny, ask and log can only be used with the mode allowlist',
  })
  .meta({ id: 'NetworkPolicy', examples: [{ mode: 'allowlist', allow: ['api.example.com', '*.example.org:443'] }] })
export type NetworkPolicy = z.infer<typeof NetworkPolicy>

export const ServerNetwork = z
  .object({
    default: NetworkPolicy.describe('OPENHANDS_NETWORK: the policy of conversations without their own.'),
    ceiling: NetworkPolicy.describe('OPENHANDS_NETWORK_CEILING: the most permissive policy of any conversation.'),
    modes: z.array(NetworkMode).describe('Modes that this server can enforce. Without a sandbox only `open`.'),
  })
  .meta({ id: 'ServerNetwork' })
export type ServerNetwork = z.infer<typeof ServerNetwork>

const Port = z.int().min(1).max(65_535)

export const NetworkTarget = { host: z.string().describe('A name in lower case, or an address.'), port: Port }

export const DecideNetworkRequest = z.strictObject({
  behavior: z.enum(['allow', 'deny']),
  remember: z
    .boolean()
    .default(false)
    .describe('Also add the host and port to `allow` or `deny` of the conversation’s policy.'),
})
export type DecideNetworkRequest = z.infer<typeof DecideNetworkRequest>
