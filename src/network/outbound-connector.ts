/**
 * Connects to hosts on behalf of sandboxes. The only file of this folder that opens connections: a name is resolved
 * once, each of its addresses is checked, and the address actually connected to is checked again.
 */
import { Resolver } from 'node:dns/promises'
import { connect, type LookupFunction, type Socket } from 'node:net'
import { canonicalAddress, createAddressRules } from '../security/public-address.ts'
import type { Host } from './host.ts'
import { formatHost } from './host.ts'
import type { PrivateRule } from './private-hosts.ts'
import { addressesOf, createPrivateHosts, isMetadata } from './private-hosts.ts'

/** The host was found, but connections to its address are not allowed. The message is a clause. */
export class AddressDenied extends Error {
  override readonly name = 'AddressDenied'
}

export interface OutboundConnector {
  /**
   * Rejects with `AddressDenied`, with the reason of the signal, or with the network's error. The caller owns the
   * socket.
   */
  connect(host: Host, port: number, signal: AbortSignal): Promise<Socket>
}

export type OutboundConnectorOptions = {
  readonly privateRules: readonly PrivateRule[]
  /** Returns every address of a name. Default: from the host's name servers. */
  readonly resolve?: (name: string, signal: AbortSignal) => Promise<readonly string[]>
}

const LOCAL_NAME = /(^|\.)localhost$/
const CONNECT_TIMEOUT_MS = 15_000
const DNS_TIMEOUT_MS = 4000
const DNS_TRIES = 2

export function createOutboundConnector({
  privateRules,
  resolve = queryNameServers,
}: OutboundConnectorOptions): OutboundConnector {
  const isPrivateAllowed = createPrivateHosts(privateRules)
  const rules = createAddressRules([])

  const refusal = (address: string, port: number, host: Host): string | undefined => {
    if (isMetadata(address)) return 'its address serves credentials of the machine'
    if (isPrivateAllowed(address, port, host)) return undefined
    return rules.refusal(address, formatHost(host))
  }

  const addressesFor = async (host: Host, port: number, signal: AbortSignal): Promise<string[]> => {
    const foundAddresses = host.kind === 'address' ? [host.address] : await addressesOfName(host.name, signal)
    const judgedAddresses = foundAddresses
      .map((each) => canonicalAddress(each))
      .map((each) => [each, refusal(each, port, host)] as const)
    const open = judgedAddresses.filter(([, why]) => why === undefined).map(([address]) => address)
    if (open.length === 0) throw new AddressDenied(judgedAddresses[0]?.[1] ?? 'its name has no address')
    return open
  }

  const addressesOfName = async (name: string, signal: AbortSignal): Promise<readonly string[]> => {
    const givenAddresses = addressesOf(privateRules, name)
    if (givenAddresses.length > 0) return givenAddresses
    // These names are defined by RFC 6761, whatever a name server returns.
    return LOCAL_NAME.test(name) ? ['127.0.0.1', '::1'] : await resolve(name, signal)
  }

  return {
    async connect(host, port, signal) {
      const both = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)])
      const socket = await open(await addressesFor(host, port, both), port, both)
      const metRefusal = refusal(canonicalAddress(socket.remoteAddress ?? '0.0.0.0'), port, host)
      if (metRefusal === undefined) return socket
      socket.destroy()
      throw new AddressDenied(metRefusal)
    },
  }
}

/** Tries the addresses of both families in turn, as browsers do (RFC 8305). */
async function open(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  // The name is never resolved again: these are all of its addresses.
  const socket = connect({
    host: 'judged',
    port,
    lookup: answerWith(addresses),
    autoSelectFamily: true,
    allowHalfOpen: true,
  })
  const abort = () => socket.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', () => resolve(socket)).once('error', reject)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', abort)
    socket.off('error', reject)
    // Keep an error until the caller listens.
    socket.on('error', () => {})
  }
}

const answerWith =
  (addresses: readonly string[]): LookupFunction =>
  (_name, { all }, callback) => {
    const foundAddresses = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    // Asynchronous, as Node's own lookup is.
    const [{ address, family } = { address: '', family: 0 }] = foundAddresses
    queueMicrotask(() => (all ? callback(null, foundAddresses) : callback(null, address, family)))
  }

/** Does without the system's `lookup`: that uses a thread for each name, and slow names would delay the models'. */
async function queryNameServers(name: string, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted()
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const foundAddresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (foundAddresses.length === 0 && answers[0]?.status === 'rejected') throw answers[0].reason
    return foundAddresses
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
