/** The keys of vendors in an environment. The only file that decides which of them an endpoint may get. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { endpointOf } from './endpoint.ts'
import { LlmError } from '../errors/llm-error.ts'
import type { Vendor } from './vendors.ts'
import { vendorAt, vendorOfPrefix, VENDORS } from './vendors.ts'

type Environment = Readonly<Record<string, string | undefined>>

export type VendorKey = { readonly vendor: Vendor; readonly variable: string; readonly key: string }

export class VendorKeys {
  /** The keys, with those that are not used, because another variable of the vendor takes precedence. */
  readonly all: readonly VendorKey[]
  /** The keys by the id of the vendor. */
  readonly #keys: ReadonlyMap<string, VendorKey>

  constructor(environment: Environment) {
    this.all = VENDORS.flatMap((vendor) => keysIn(environment, vendor))
    this.#keys = new Map(this.all.toReversed().map((key) => [key.vendor.id, key]))
  }

  /** The key for an endpoint: only at the vendor's own host, over TLS. */
  at(url: string): VendorKey | undefined {
    const vendor = new URL(url).protocol === 'https:' ? vendorAt(url) : undefined
    return vendor && this.#keys.get(vendor.id)
  }

  /** The same for the endpoint of a configuration; undefined if it has none. */
  for(config: LlmConfig): VendorKey | undefined {
    try {
      return this.at(endpointOf(config).baseUrl)
    } catch (error) {
      if (error instanceof LlmError) return undefined
      throw error
    }
  }

  /** Adds the URL of OpenAI if nothing says where the model is and there is no key of any other vendor. */
  withOnlyVendor<T extends LlmConfig>(config: T): T {
    const { model, base_url, provider } = config
    const isOnly = this.#keys.size === 1 && this.#keys.has(OPENAI)
    const isBare = model !== undefined && base_url === undefined && provider === undefined && !model.includes('/')
    return isOnly && isBare && isNowhere(config) ? { ...config, base_url: vendorOfPrefix(OPENAI)?.baseUrl } : config
  }
}

const OPENAI = 'openai'

const keysIn = (environment: Environment, vendor: Vendor): VendorKey[] =>
  vendor.keyVariables.flatMap((variable) => {
    const key = environment[variable]?.trim()
    return key ? [{ vendor, variable, key }] : []
  })

function isNowhere(config: LlmConfig): boolean {
  try {
    endpointOf(config)
    return false
  } catch (error) {
    if (error instanceof LlmError) return true
    throw error
  }
}

/** Headers that carry a key: with one of them, an endpoint needs no other. */
const OF_KEYS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key'])

export const hasKeyHeader = ({ extra_headers = {} }: LlmConfig): boolean =>
  Object.keys(extra_headers).some((name) => OF_KEYS.has(name.toLowerCase()))
