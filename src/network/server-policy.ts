/** The operator's network policies: parses settings, and checks conversations' policies against them. */
import type { NetworkMode, NetworkPolicy, ServerNetwork } from '../contract/values/network.ts'
import { NetworkMode as Mode } from '../contract/values/network.ts'
import { Problem } from '../contract/problem.ts'
import { parseEntry } from './allow-entry.ts'
import type { Rules } from './policy.ts'
import { findExcess, parseRules, stricterMode } from './policy.ts'

/** Parses `open`, `none`, or `allowlist:host,host`. Returns a policy, or a clause about the error. */
export function parsePolicySetting(text: string): NetworkPolicy | { readonly wrong: string } {
  const [name = '', ...rest] = text.split(':')
  const mode = Mode.safeParse(name.trim())
  if (!mode.success) return { wrong: 'it must be open, none, or allowlist:host,host' }
  const list = rest.join(':')
  if (mode.data !== 'allowlist') return list === '' ? { mode: mode.data } : { wrong: 'only allowlist can have hosts' }
  const allow = list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  const wrong = allow.find((entry) => !parseEntry(entry))
  return wrong === undefined ? { mode: 'allowlist', allow } : { wrong: `${wrong} ${ENTRY_FORM}` }
}

const ENTRY_FORM = 'is not a host: write a name, *.name, *, or an address, optionally with a port after a colon'

/** Throws a `Problem` if the policy is not allowed on this server. */
export function checkPolicy(policy: NetworkPolicy, server: ServerNetwork): void {
  const rules = parseRules(policy)
  if ('wrong' in rules) throw new Problem('invalid_request', `network: ${rules.wrong} ${ENTRY_FORM}.`)
  const excess = findExcess(policy, server.ceiling)
  if (excess !== undefined)
    throw new Problem('network_not_permitted', `network: ${excess}. GET /info shows what it permits.`)
  if (server.modes.includes(policy.mode)) return
  throw new Problem(
    'network_mode_unavailable',
    `network: this server has no sandbox, so it cannot enforce the mode ${policy.mode}. Install bubblewrap, or use the mode open.`,
  )
}

/** The effective policy of a conversation. */
export type Effective = { readonly mode: NetworkMode; readonly own: Rules; readonly ceiling: Rules }

/** `own` undefined: the conversation has no policy, and the server's default applies. */
export function effectivePolicy(own: NetworkPolicy | undefined, server: ServerNetwork): Effective {
  const [below, above] = [rulesOf(own ?? server.default), rulesOf(server.ceiling)]
  return { mode: stricterMode(below.mode, above.mode), own: below, ceiling: above }
}

const NOTHING: Rules = { mode: 'none', allow: [], deny: [], ask: false }

/** Stored policies were checked before; a damaged one permits nothing. */
function rulesOf(policy: NetworkPolicy): Rules {
  const rules = parseRules(policy)
  return 'wrong' in rules ? NOTHING : rules
}
