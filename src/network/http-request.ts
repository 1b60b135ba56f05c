/**
 * The HTTP side of the proxy: CONNECT, and requests with an absolute `http://` URL, one per connection. Only the head
 * is read; what follows it is forwarded unchanged, if anything may follow.
 */
import type { ProxyRefusal, Request, Step } from './proxy-request.ts'
import type { Host } from './host.ts'
import { parseHost, parsePort, splitPort } from './host.ts'

const END = '\r\n\r\n'
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.[01]$/
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t\x20-\x7e\x80-\xff]*$/
const ABSOLUTE = /^http:\/\/([^/?#@]*)([/?][^#]*)?$/i
/** They are for the proxy, or are replaced. */
const NOT_PASSED_ON = new Set(['host', 'connection', 'keep-alive', 'proxy-connection', 'proxy-authorization'])

export function parseHttp(bytes: Buffer): Step | undefined {
  const end = bytes.indexOf(END)
  // A different protocol, such as TLS, would otherwise be waited for until the timeout.
  if (end < 0)
    return /^[!-~]+( |$)/.test(bytes.toString('latin1', 0, 32)) ? undefined : fault('this is not an HTTP request')
  const [first = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n')
  const [, method = '', target = ''] = REQUEST_LINE.exec(first) ?? []
  if (!method || !headers.every((line) => HEADER_LINE.test(line))) return fault('this is not a valid HTTP request')
  const request = method === 'CONNECT' ? connect(target) : forward(method, target, headers)
  if (!request) return fault(PROXY_USAGE)
  return { kind: 'request', used: end + END.length, request }
}

const PROXY_USAGE =
  'this is the network proxy of the sandbox; it accepts CONNECT host:port, and requests with an absolute http:// URL'

function connect(target: string): Request | undefined {
  const at = targetOf(target)
  if (!at) return undefined
  const acceptance = Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n')
  return { ...at, head: Buffer.alloc(0), more: 'all', accepted: acceptance, refused: refusal }
}

function forward(method: string, url: string, headers: readonly string[]): Request | undefined {
  const [, authority = '', path = '/'] = ABSOLUTE.exec(url) ?? []
  const at = targetOf(authority, 80)
  if (!at) return undefined
  const nameOf = (line: string) => line.slice(0, line.indexOf(':')).toLowerCase()
  const names = new Set(headers.map(nameOf))
  const hasBody = ['content-length', 'transfer-encoding'].some((name) => names.has(name))
  // A body would make the server wait, and the proxy for the server's consent: such a request is not upgraded.
  const upgrades = names.has('upgrade') && !hasBody
  const lines = [
    `${method} ${path.startsWith('/') ? path : `/${path}`} HTTP/1.1`,
    // Use the URL's host, which was checked: the server behind it must not receive another one.
    `Host: ${authority}`,
    ...headers.filter((line) => !NOT_PASSED_ON.has(nameOf(line)) && (upgrades || nameOf(line) !== 'upgrade')),
    // The next request on this connection could be for another host.
    `Connection: ${upgrades ? 'Upgrade, close' : 'close'}`,
  ]
  const head = Buffer.from(lines.join('\r\n') + END, 'latin1')
  return {
    ...at,
    head,
    more: hasBody ? 'all' : upgrades ? 'if_upgraded' : 'nothing',
    accepted: Buffer.alloc(0),
    refused: refusal,
  }
}

function targetOf(text: string, defaultPort?: number): { host: Host; port: number } | undefined {
  const split = splitPort(text)
  const host = split && parseHost(Buffer.from(split.host, 'latin1').toString('utf8'))
  const port = split?.port === undefined ? defaultPort : parsePort(split.port)
  return host && port !== undefined ? { host, port } : undefined
}

const STATUS: Readonly<Record<ProxyRefusal, string>> = {
  denied: '403 Refused by the network policy',
  unreachable: '502 Not reachable',
}

const refusal = (why: ProxyRefusal, sentence: string) => answer(STATUS[why], sentence)

const fault = (what: string): Step => ({ kind: 'fault', bytes: answer('400 Bad Request', `Bad request: ${what}.`) })

/** Agents read it: it says what happened and what to do. */
function answer(status: string, sentence: string): Buffer {
  const body = Buffer.from(`${sentence}\n`)
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  return Buffer.concat([Buffer.from(head.join('\r\n') + END), body])
}
