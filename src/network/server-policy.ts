/** The operator's side of network policies: how settings are written, and what a conversation's policy has to keep to. */
import type { NetworkMode, NetworkPolicy, ServerNetwork } from '../contract/network.ts'
import { NetworkMode as Mode } from '../contract/network.ts'
import { Problem } from '../contract/problem.ts'
import { parseEntry } from './allow-entry.ts'
import type { Rules } from './policy.ts'
import { findExcess, parseRules, stricterMode } from './policy.ts'

/** `open`, `none`, or `allowlist:host,host`. Returns a clause about what is wrong in place of a policy. */
export function parsePolicySetting(text: string): NetworkPolicy | { readonly wrong: string } {
  const [name = '', ...rest] = text.split(':')
  const mode = Mode.safeParse(name.trim())
  if (!mode.success) return { wrong: 'it is open, none, or allowlist:host,host' }
  const list = rest.join(':')
  if (mode.data !== 'allowlist') return list === '' ? { mode: mode.data } : { wrong: 'only allowlist takes hosts' }
  const allow = list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  const wrong = allow.find((entry) => !parseEntry(entry))
  return wrong === undefined ? { mode: 'allowlist', allow } : { wrong: `${wrong} ${ENTRY_FORM}` }
}

const ENTRY_FORM = 'is no host: write a name, *.name, *, or an address, and where needed a port after a colon'

/** Throws a `Problem` when a conversation may not have the policy here. */
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

/** What holds in a conversation now. */
export type Effective = { readonly mode: NetworkMode; readonly own: Rules; readonly ceiling: Rules }

/** `own` undefined: the conversation has none, and the server's default holds. */
export function effectivePolicy(own: NetworkPolicy | undefined, server: ServerNetwork): Effective {
  const [below, above] = [rulesOf(own ?? server.default), rulesOf(server.ceiling)]
  return { mode: stricterMode(below.mode, above.mode), own: below, ceiling: above }
}

const NOTHING: Rules = { mode: 'none', allow: [], deny: [], ask: false }

/** What was stored was checked before; should it be damaged, it permits nothing. */
function rulesOf(policy: NetworkPolicy): Rules {
  const rules = parseRules(policy)
  return 'wrong' in rules ? NOTHING : rules
}
