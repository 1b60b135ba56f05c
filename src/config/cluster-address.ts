/** Reads where other instances of the same database reach this one. Throws a `ConfigError` for what cannot work or is not safe. */
import { resolve } from 'node:path'
import { comparedSettings } from './compared-settings.ts'
import type { ReadVariable } from './environment.ts'
import { ConfigError } from './environment.ts'

export type ClusterAddress = {
  readonly host: string
  readonly port: number
  /** Undefined: the address that it listens on. */
  readonly advertiseUrl: string | undefined
  /** Paths; undefined: connections between instances are not encrypted. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
  /** What the instances compare: values by name, some of them secret. */
  readonly settings: Readonly<Record<string, string>>
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/
const EVERY = new Set(['0.0.0.0', '::'])

export function readCluster(read: ReadVariable): ClusterAddress | undefined {
  const text = read('OPENHANDS_CLUSTER_LISTEN')
  const advertiseUrl = read('OPENHANDS_ADVERTISE_URL')
  if (text === undefined) {
    if (advertiseUrl === undefined) return undefined
    throw new ConfigError('OPENHANDS_ADVERTISE_URL needs OPENHANDS_CLUSTER_LISTEN. Set both, or none.')
  }
  if (read('OPENHANDS_DATABASE_URL') === undefined)
    throw new ConfigError('OPENHANDS_CLUSTER_LISTEN needs OPENHANDS_DATABASE_URL: instances share a database.')
  const { host, port } = readListen(text)
  if (advertiseUrl === undefined && EVERY.has(host))
    throw new ConfigError(
      'OPENHANDS_CLUSTER_LISTEN is every address, so others do not know which one to use. Set OPENHANDS_ADVERTISE_URL.',
    )
  const tls = readTlsFiles(read)
  const hosts = [host, ...(advertiseUrl === undefined ? [] : [hostOf(advertiseUrl, tls ? 'https' : 'http')])]
  if (!tls && !hosts.every((each) => LOOPBACK.test(each)) && read('OPENHANDS_CLUSTER_PLAIN') !== '1')
    throw new ConfigError(
      'Connections between instances are not encrypted, and OPENHANDS_CLUSTER_LISTEN or OPENHANDS_ADVERTISE_URL is not loopback. Set OPENHANDS_CLUSTER_TLS_CERT, OPENHANDS_CLUSTER_TLS_KEY and OPENHANDS_CLUSTER_TLS_CA; or OPENHANDS_CLUSTER_PLAIN=1 on a network that only the instances can read.',
    )
  return { host, port, advertiseUrl, tls, settings: comparedSettings(read) }
}

function readTlsFiles(read: ReadVariable): ClusterAddress['tls'] {
  const [cert, key, ca] = TLS_NAMES.map(read)
  if (cert !== undefined && key !== undefined && ca !== undefined)
    return { cert: resolve(cert), key: resolve(key), ca: resolve(ca) }
  if (cert === undefined && key === undefined && ca === undefined) return undefined
  throw new ConfigError(`${TLS_NAMES.join(', ')} belong together. Set all of them, or none.`)
}

const TLS_NAMES = ['OPENHANDS_CLUSTER_TLS_CERT', 'OPENHANDS_CLUSTER_TLS_KEY', 'OPENHANDS_CLUSTER_TLS_CA'] as const

/** Hidden from the tools of the agents. */
export const keyFilesOf = (cluster: ClusterAddress | undefined): string[] => (cluster?.tls ? [cluster.tls.key] : [])

function readListen(text: string): { host: string; port: number } {
  const [, bracketedHost, plain, digits] = /^(?:\[([\da-fA-F:]+)\]|([^\s:/]+)):(\d{1,5})$/.exec(text.trim()) ?? []
  const [host, port] = [bracketedHost ?? plain, Number(digits)]
  if (host !== undefined && port <= 65_535) return { host, port }
  throw new ConfigError('OPENHANDS_CLUSTER_LISTEN is not valid: give it as host:port, for example 10.0.0.5:8100.')
}

function hostOf(url: string, scheme: 'http' | 'https'): string {
  const parsedUrl = URL.parse(url)
  if (parsedUrl?.protocol === `${scheme}:` && parsedUrl.pathname === '/' && parsedUrl.search === '')
    return parsedUrl.hostname
  throw new ConfigError(`OPENHANDS_ADVERTISE_URL is not valid: give it as ${scheme}://host:port, without a path.`)
}
