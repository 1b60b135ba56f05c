/** Finds the providers whose prices hold at an endpoint. */
import { vendorAt } from '../endpoints/vendors.ts'
import { ANY_PROVIDER } from './model-facts.ts'

/** Returns the providers whose entries hold at a URL, the most exact first. Elsewhere the same name has another price. */
export function providersAt(baseUrl: string): readonly string[] {
  const { host } = new URL(baseUrl)
  const knownVendor = vendorAt(baseUrl)
  return knownVendor === undefined ? [host, ANY_PROVIDER] : [knownVendor.id, host]
}

/** OpenRouter is the only one that says what each answer cost (`usage.cost`). */
export const reportsCost = (baseUrl: string): boolean => vendorAt(baseUrl)?.id === 'openrouter'
