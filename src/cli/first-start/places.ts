/** Lists the places that can serve a model, as the first question offers them. */
import { personalVariable } from '../../config/environment.ts'
import { faultOfHeaderValue, hasUserInfo } from '../../contract/values/http-header.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import type { Vendor } from '../../llm/endpoints/vendors.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoints.ts'
import type { ListOption } from './choice-list.ts'
import { isForOtherWork } from './model-options.ts'

export type Place = ListOption & {
  /** All of the endpoint except its model and its key. */
  readonly llm: LlmConfig & { readonly base_url: string }
  /** A key that is set already. */
  readonly key: { readonly value: string; readonly name: string } | undefined
  /** Whether it is useless without a key. */
  readonly needsKey: boolean
  /** Known already for servers on this machine. */
  readonly models?: readonly ListedModel[]
}

const MAX_NAMED = 3

export function localPlace({ label, baseUrl, models }: LocalEndpoint): Place {
  const names = models.map(({ id, name }) => id ?? name ?? '').filter((each) => !isForOtherWork(each))
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return {
    label: `${label} on this machine`,
    detail: `${names.slice(0, MAX_NAMED).join(', ')}${more}`,
    llm: { base_url: baseUrl },
    key: undefined,
    needsKey: false,
    models,
  }
}

/** Vendors with a key in the environment come first. `given`: a key that is set for any endpoint. */
export function vendorPlaces(vendors: readonly Vendor[], givenKey: Place['key']): Place[] {
  const places = vendors.flatMap(({ label, baseUrl, isLocal, keyVariables, modelList }): Place[] => {
    // The URL of the others depends on the customer, or their keys are not made by hand.
    if (baseUrl === undefined || isLocal || keyVariables.length === 0 || modelList === undefined) return []
    const key = givenKey ?? keyOf(keyVariables)
    const detail = key === undefined ? new URL(baseUrl).host : `with the key of ${key.name}`
    return [{ label, detail, llm: { base_url: baseUrl }, key, needsKey: true }]
  })
  return places.toSorted((one, other) => Number(other.key !== undefined) - Number(one.key !== undefined))
}

/** Returns the first key that can be sent; without one, the person is asked for another key. */
function keyOf(variables: readonly string[]): Place['key'] {
  const set = variables.map((name) => ({ name, value: personalVariable(name)?.trim() ?? '' }))
  return set.find(({ value }) => value !== '' && faultOfHeaderValue(value) === undefined)
}

/** The place of a URL that a person has entered. A host alone means its path that nearly all servers have. */
export function placeAt(text: string): Place {
  const url = new URL(text)
  if (url.pathname === '/') url.pathname = '/v1'
  const base_url = url.href.replace(/\/$/, '')
  return { label: url.host, detail: '', llm: { base_url }, key: undefined, needsKey: false }
}

export function faultOfUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'This is not an http or https URL, such as https://api.example.com/v1.'
  if (hasUserInfo(text)) return 'Leave the user name and the password out; a key is asked for next.'
  return /\/chat\/completions\/*$/.test(url.pathname)
    ? 'Leave out /chat/completions: it is added to the URL of each request.'
    : undefined
}

/** Whether everybody on the way can read a key. */
export const isUnencrypted = ({ llm: { base_url } }: Place): boolean =>
  base_url.startsWith('http:') && !/^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|\/|$)/.test(base_url)
