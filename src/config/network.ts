/** Reads the settings for hosts: of browsers, proxies, callbacks, commands and model requests. */
import { isIP } from 'node:net'
import type { Name } from './variables.ts'
import { hasUserInfo } from '../contract/values/http-header.ts'
import type { NetworkPolicy } from '../contract/values/network.ts'
import { findExcess } from '../network/policy.ts'
import type { PrivateRule } from '../network/private-hosts.ts'
import { parsePrivateRule } from '../network/private-hosts.ts'
import { parsePolicySetting } from '../network/server-policy.ts'
import { isEndpointRule } from '../security/endpoint-rules.ts'
import { isAddressRule } from '../security/public-address.ts'

import type { ReadVariable } from './environment.ts'
import { ConfigError } from './environment.ts'

/** Reads origins as browsers send them: scheme, host and port only. Any other form would never match. */
export function readOrigins(value: string | undefined): string[] {
  const origins = listOf(value)
  const wrong = origins.find((origin) => origin !== '*' && !isOrigin(origin))
  if (wrong === undefined) return origins
  throw new ConfigError('OPENHANDS_CORS_ORIGINS takes origins such as https://app.example.com without wildcards, or *.')
}

/** Returns the URL without a slash at the end; it may have a path. */
export function readPublicUrl(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const url = URL.parse(value)
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && !hasUserInfo(value) && !/[?#]/.test(value)
  if (!isPlain) throw new ConfigError('OPENHANDS_PUBLIC_URL takes a URL such as https://agents.example.com.')
  return url.href.replace(/(?<!\/)\/+$/, '')
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text && !text.includes('*')
}

/** Accepts neither all proxies nor a number of hops: a client that connects directly could then claim any address. */
export function readProxies(value: string | undefined): string[] {
  const proxies = listOf(value)
  if (proxies.every(isNetwork)) return proxies
  throw new ConfigError(
    'OPENHANDS_TRUST_PROXY takes addresses and networks, such as 127.0.0.1,10.0.0.0/8, and not all addresses.',
  )
}

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (prefix === undefined) return true
  return /^\d{1,3}$/.test(prefix) && Number(prefix) > 0 && Number(prefix) <= (version === 4 ? 32 : 128)
}

function listOf(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
}

export function readAddresses(name: Name, read: ReadVariable): string[] {
  const allowedAddresses = listOf(read(name))
  const wrong = allowedAddresses.find((entry) => !isAddressRule(entry))
  if (wrong === undefined) return allowedAddresses
  throw new ConfigError(`${name}: ${wrong} is not an address, CIDR range or host name.`)
}

/** The default policy of conversations, and the maximum for any of them. */
export type NetworkSettings = { readonly default: NetworkPolicy; readonly ceiling: NetworkPolicy }

export function readNetwork(read: ReadVariable): NetworkSettings {
  const ceiling = readPolicy('OPENHANDS_NETWORK_CEILING', read) ?? { mode: 'open' }
  const policy = readPolicy('OPENHANDS_NETWORK', read) ?? ceiling
  const excess = findExcess(policy, ceiling)
  if (excess === undefined) return { default: policy, ceiling }
  throw new ConfigError(`OPENHANDS_NETWORK is more than OPENHANDS_NETWORK_CEILING: ${excess}.`)
}

function readPolicy(name: Name, read: ReadVariable): NetworkPolicy | undefined {
  const text = read(name)
  const policy = text === undefined ? undefined : parsePolicySetting(text)
  if (policy && 'wrong' in policy) throw new ConfigError(`${name} is not valid: ${policy.wrong}.`)
  return policy
}

export function readPrivateRules(value: string | undefined): PrivateRule[] {
  return listOf(value).map((entry) => {
    const rule = parsePrivateRule(entry)
    if ('wrong' in rule) throw new ConfigError(`OPENHANDS_NETWORK_PRIVATE_ALLOW: ${rule.wrong}.`)
    return rule
  })
}

/** The server's own endpoint is always included. */
export function readLlmAllow(value: string | undefined, ownUrl: string | undefined): string[] {
  const allowedEndpoints = listOf(value)
  // Every endpoint would be allowed without an entry.
  const isEmpty = value !== undefined && allowedEndpoints.length === 0
  if (isEmpty || !allowedEndpoints.every(isEndpointRule)) {
    throw new ConfigError(
      'OPENHANDS_LLM_ALLOW takes origins such as https://api.example.com, wildcard hosts such as *.example.com, and public.',
    )
  }
  return allowedEndpoints.length > 0 && ownUrl !== undefined
    ? [...allowedEndpoints, new URL(ownUrl).origin]
    : allowedEndpoints
}
