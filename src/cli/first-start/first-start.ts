/**
 * The first start of the chat, when no model or no key is set: where the model is, its key, which model, and whether that is
 * kept. Nothing is written before the person agrees, and no request costs anything.
 */
import { wantsColor } from '../../config/config.ts'
import { faultOfHeaderValue } from '../../contract/values/http-header.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import type { Vendor } from '../../llm/endpoints/vendors.ts'
import { vendorAt, VENDORS } from '../../llm/endpoints/vendors.ts'
import type { ModelsAnswer } from '../endpoints/fetch-models.ts'
import { fetchModels } from '../endpoints/fetch-models.ts'
import type { LocalModelServer } from '../endpoints/local-endpoints.ts'
import { findLocalEndpoints, LOCAL_SERVERS } from '../endpoints/local-endpoints.ts'
import type { ChooseModel, ChosenModel, MissingModel } from '../settings/choose-model.ts'
import { Dialog, DialogLeft } from './dialog.ts'
import { keepAnswers } from './keep-answers.ts'
import { modelOptions } from './model-options.ts'
import type { Place } from './places.ts'
import { faultOfUrl, isUnencrypted, localPlace, placeAt, vendorPlaces } from './places.ts'

/** The places that may have models. */
export type KnownPlaces = {
  readonly localServers: readonly LocalModelServer[]
  /** How long servers of this machine may take to answer. */
  readonly localTimeoutMs: number
  readonly vendors: readonly Vendor[]
}

/** Closed ports answer at once, and servers within milliseconds: a person waits as long only for a program that hangs. */
const LOCAL_TIMEOUT_MS = 5000

const KNOWN_PLACES: KnownPlaces = {
  localServers: LOCAL_SERVERS,
  localTimeoutMs: LOCAL_TIMEOUT_MS,
  vendors: VENDORS,
}

/** `known`: other places, for tests. */
export const createFirstStart =
  (knownPlaces: KnownPlaces = KNOWN_PLACES): ChooseModel =>
  async (missing) => {
    using dialog = new Dialog(wantsColor())
    dialog.open()
    try {
      return await new FirstStart(dialog, missing, knownPlaces).run()
    } catch (error) {
      if (!(error instanceof DialogLeft)) throw error
      dialog.close()
      if (error.exitCode !== undefined) process.exit(error.exitCode)
      return undefined
    }
  }

/** `models` is undefined if the endpoint was not asked with success. */
type Connection = { readonly key: string | undefined; readonly models: readonly ListedModel[] | undefined }

class FirstStart {
  readonly #dialog: Dialog
  readonly #missing: MissingModel
  readonly #knownPlaces: KnownPlaces

  constructor(dialog: Dialog, missing: MissingModel, knownPlaces: KnownPlaces) {
    this.#dialog = dialog
    this.#missing = missing
    this.#knownPlaces = knownPlaces
  }

  async run(): Promise<ChosenModel> {
    const { llm } = this.#missing
    const isFixed = llm.base_url !== undefined || llm.model !== undefined
    this.#dialog.say(
      llm.model === undefined
        ? 'Welcome to agent-server. Its agents need a model, and nothing is set yet.'
        : `agent-server needs a key for ${llm.model}.`,
    )
    for (;;) {
      const place = isFixed ? this.#fixedPlace() : await this.#choosePlace()
      const connection = await this.#connect(place, !isFixed)
      if (connection === undefined) continue
      const model = llm.model ?? (await this.#chooseModel(place, connection, !isFixed))
      if (model === undefined) continue
      return await this.#keep(place, model, connection.key)
    }
  }

  /** Returns the place of an endpoint or of a model that is set. */
  #fixedPlace(): Place {
    const { llm, nameOfKey } = this.#missing
    const { baseUrl } = endpointOf({ ...llm, model: llm.model ?? UNKNOWN })
    const { model: _, api_key, ...rest } = llm
    const label = vendorAt(baseUrl)?.label ?? new URL(baseUrl).host
    const key = api_key === undefined ? undefined : { value: api_key, name: nameOfKey ?? 'the settings' }
    return { label, detail: '', llm: { ...rest, base_url: baseUrl }, key, needsKey: llm.model !== undefined }
  }

  async #choosePlace(): Promise<Place> {
    const { llm, nameOfKey = 'the settings' } = this.#missing
    const givenKey = llm.api_key === undefined ? undefined : { value: llm.api_key, name: nameOfKey }
    // Somebody who has set a key means a vendor, and a program at a port of this machine must not get it.
    const { localServers, localTimeoutMs, vendors } = this.#knownPlaces
    const limit = { signal: this.#dialog.signal, timeoutMs: localTimeoutMs }
    const searching = findLocalEndpoints(givenKey ? [] : localServers, limit)
    const foundEndpoints = await this.#dialog.wait('Looking for models on this machine…', searching)
    const [usable, empty] = [
      foundEndpoints.filter(({ models }) => models.length > 0),
      foundEndpoints.filter((each) => !each.models.length),
    ]
    const places = [...usable.map(localPlace), ...vendorPlaces(vendors, givenKey)]
    const another = { label: 'Another endpoint', detail: 'a URL with an API like that of OpenAI' }
    for (;;) {
      const index = await this.#dialog.choose({
        title: 'Where is the model?',
        text: empty.map(({ label }) => `${label} runs on this machine, but has no models yet.`).join(' '),
        options: [...places, another],
        canGoBack: false,
      })
      const place = index === undefined ? undefined : (places[index] ?? (await this.#enterPlace()))
      if (place !== undefined) return place
    }
  }

  async #enterPlace(): Promise<Place | undefined> {
    const url = await this.#dialog.enter({
      title: 'URL of the endpoint',
      text: 'Such as https://api.example.com/v1 or http://127.0.0.1:8080/v1.',
      isSecret: false,
      canGoBack: true,
      faultOf: faultOfUrl,
    })
    return url === undefined ? undefined : placeAt(url)
  }

  /** Undefined: the person wants to choose another place. */
  async #connect(place: Place, canGoBack: boolean): Promise<Connection | undefined> {
    if (place.models) return { key: undefined, models: place.models }
    let key = place.key?.value
    let fault: string | undefined
    for (;;) {
      if (key === undefined && (place.needsKey || fault !== undefined)) {
        key = await this.#enterKey(place, canGoBack, fault)
        if (key === undefined) return undefined
      }
      const endpoint = endpointOf({ ...place.llm, model: this.#missing.llm.model ?? UNKNOWN, api_key: key })
      const fetching = fetchModels(endpoint, this.#dialog.signal)
      const answer = await this.#dialog.wait(`Asking ${place.label} for its models, which costs nothing…`, fetching)
      if (answer.kind === 'models') return { key, models: answer.models }
      if (answer.kind === 'refused') {
        fault = refusalOf(place, key, answer.status)
        key = undefined
        continue
      }
      const next = await this.#afterFailure(place, answer, canGoBack)
      if (next === 'back') return undefined
      if (next === 'unchecked') return { key, models: undefined }
    }
  }

  #enterKey(place: Place, canGoBack: boolean, fault: string | undefined): Promise<string | undefined> {
    const { host } = new URL(place.llm.base_url)
    const warning = isUnencrypted(place) ? ' The connection is not encrypted.' : ''
    return this.#dialog.enter({
      title: `API key of ${place.label}`,
      text: `It is sent to ${host} only, and not shown.${warning}`,
      isSecret: true,
      canGoBack,
      faultOf: (text) => (faultOfHeaderValue(text) === undefined ? undefined : 'A key has no such characters.'),
      fault,
    })
  }

  async #afterFailure(
    { label }: Place,
    answer: Exclude<ModelsAnswer, { kind: 'models' | 'refused' }>,
    canGoBack: boolean,
  ): Promise<'again' | 'unchecked' | 'back'> {
    const isListless = answer.kind === 'listless'
    const options = [
      { next: 'again', label: 'Try again', detail: '' },
      { next: 'unchecked', label: 'Continue', detail: 'without a check' },
      ...(canGoBack ? [{ next: 'back', label: 'Choose another endpoint', detail: '' } as const] : []),
    ] as const
    const index = await this.#dialog.choose({
      title: isListless
        ? `${label} has no list of models (${answer.status}), so the key cannot be checked.`
        : `${label} does not answer: ${answer.reason}.`,
      text: isListless ? '' : answer.fix,
      options,
      canGoBack,
    })
    return options[index ?? -1]?.next ?? 'back'
  }

  /** Undefined: the person wants to choose another place. */
  async #chooseModel(place: Place, { models = [] }: Connection, canGoBack: boolean): Promise<string | undefined> {
    const options = modelOptions(models, place.llm)
    const [first] = options
    if (first === undefined)
      return await this.#dialog.enter({
        title: `Name of the model at ${place.label}`,
        text: '',
        isSecret: false,
        canGoBack,
      })
    const hasPrices = options.some(({ detail }) => detail.includes('$'))
    const index = await this.#dialog.choose({
      title: `Which model of ${place.label}?`,
      text: hasPrices ? 'With the tokens that it can read, and the price of a million tokens.' : '',
      options,
      canGoBack,
    })
    return index === undefined ? undefined : options[index]?.model
  }

  async #keep(place: Place, model: string, key: string | undefined): Promise<ChosenModel> {
    const { base_url } = place.llm
    this.#dialog.say(`${model} of ${place.label}`)
    const isTyped = key !== undefined && key !== place.key?.value
    const values = withoutUndefined({ model, base_url, api_key: isTyped ? key : undefined })
    const keptAnswers = await keepAnswers(this.#dialog, this.#missing.file, values)
    // A key of the environment is used, and stays there.
    return { values: withoutUndefined({ ...values, api_key: key }), ...keptAnswers }
  }
}

/** The list of models is the same for each. */
const UNKNOWN = 'unknown'

function refusalOf({ label, key: givenKey }: Place, key: string | undefined, status: number): string {
  if (key === undefined) return `${label} wants a key (${status}).`
  const which = givenKey?.value === key ? `the key of ${givenKey.name}` : 'this key'
  return `${label} refuses ${which} (${status}). Check that all of it was copied, and that it is a key of ${label}.`
}
