/**
 * An MCP server that asks for OAuth, and its authorization server at another origin. The first part of the path says how
 * they misbehave.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type SeenByOauth = { readonly path: string; readonly body: string; readonly headers: Record<string, unknown> }

type Code = { readonly challenge: string; readonly client: string }

export class OauthServer implements AsyncDisposable {
  readonly seen: SeenByOauth[] = []
  readonly access = new Set<string>()
  readonly refresh = new Set<string>()
  readonly #codes = new Map<string, Code>()
  readonly #resource = createServer((request, response) => void this.#take(request, response, 'resource'))
  readonly #authority = createServer((request, response) => void this.#take(request, response, 'authority'))
  resourceUrl = ''
  authorityUrl = ''

  static async start(): Promise<OauthServer> {
    const server = new OauthServer()
    server.resourceUrl = await listen(server.#resource)
    server.authorityUrl = await listen(server.#authority)
    return server
  }

  mcpUrl(mode: string): string {
    return `${this.resourceUrl}/${mode}/mcp`
  }

  /** What was sent to the token endpoint. */
  tokenRequests(mode: string): URLSearchParams[] {
    return this.seen.filter(({ path }) => path === `/${mode}/token`).map(({ body }) => new URLSearchParams(body))
  }

  async [Symbol.asyncDispose]() {
    for (const each of [this.#resource, this.#authority]) {
      each.closeAllConnections()
      each.close()
    }
  }

  async #take(request: IncomingMessage, response: ServerResponse, at: 'resource' | 'authority'): Promise<void> {
    const url = new URL(request.url!, 'http://localhost')
    const body = await text(request)
    this.seen.push({ path: url.pathname, body, headers: request.headers })
    const json = (status: number, value: unknown, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
    const [, first = '', second = '', third = ''] = url.pathname.split('/')
    if (at === 'resource' && first !== '.well-known') return void this.#serve(request, body, first, { response, json })
    if (first === '.well-known' && second === 'oauth-protected-resource') return void this.#name(third, response, json)
    if (first === '.well-known') return void this.#describe(second, third, json)
    if (second === 'register')
      return void json(201, { ...JSON.parse(body), client_id: `client-${randomBytes(4).toString('hex')}` })
    if (second === 'authorize') return void this.#authorize(first, url.searchParams, response)
    if (second === 'token') return void this.#token(first, body, request, json)
    response.writeHead(404).end()
  }

  #serve(request: IncomingMessage, body: string, mode: string, { response, json }: Reply): unknown {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (!this.access.has(token)) {
      const metadata = `${this.resourceUrl}/.well-known/oauth-protected-resource/${mode}`
      return json(401, {}, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` })
    }
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params } = JSON.parse(body)
    const answer = (result: object) => json(200, { jsonrpc: '2.0', id, result })
    if (method === 'initialize')
      return answer({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'safe', version: '1' },
      })
    if (method === 'tools/list') return answer({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] })
    if (method === 'tools/call') return answer({ content: [{ type: 'text', text: `called with ${token}` }] })
    return response.writeHead(202).end()
  }

  #name(mode: string, response: ServerResponse, json: Json): unknown {
    if (mode === 'redirects') return response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end()
    const authority = mode === 'inside' ? 'http://169.254.169.254' : `${this.authorityUrl}/${mode}`
    return json(200, { resource: this.mcpUrl(mode), authorization_servers: [authority] })
  }

  #describe(kind: string, mode: string, json: Json): unknown {
    if (kind !== 'oauth-authorization-server' || mode === '') return json(404, {})
    const issuer = `${this.authorityUrl}/${mode}`
    return json(200, {
      issuer: mode === 'impostor' ? `${this.resourceUrl}/other` : issuer,
      authorization_endpoint: mode === 'script' ? 'javascript:alert(1)' : `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'none'],
      authorization_response_iss_parameter_supported: true,
      ...(mode === 'huge' && { filler: 'x'.repeat(2 * 1024 ** 2) }),
    })
  }

  #authorize(mode: string, asked: URLSearchParams, response: ServerResponse): unknown {
    const code = `code-${randomBytes(12).toString('hex')}`
    this.#codes.set(code, { challenge: asked.get('code_challenge')!, client: asked.get('client_id')! })
    const back = new URL(asked.get('redirect_uri')!)
    back.search = String(new URLSearchParams({ code, state: asked.get('state')!, iss: `${this.authorityUrl}/${mode}` }))
    return response.writeHead(302, { location: back.href }).end()
  }

  #token(mode: string, body: string, request: IncomingMessage, json: Json): unknown {
    const asked = new URLSearchParams(body)
    if (mode === 'echoes')
      return json(400, { error: 'invalid_request', error_description: `${body} ${request.headers.authorization}` })
    const refused = json.bind(undefined, 400, { error: 'invalid_grant', error_description: `no such grant: ${body}` })
    switch (asked.get('grant_type')) {
      case 'authorization_code': {
        const code = this.#codes.get(asked.get('code')!)
        this.#codes.delete(asked.get('code')!)
        const challenge = createHash('sha256').update(asked.get('code_verifier')!).digest('base64url')
        return code?.challenge === challenge && code.client === asked.get('client_id')
          ? json(200, this.#issue())
          : refused()
      }
      case 'refresh_token':
        return this.refresh.delete(asked.get('refresh_token')!) ? json(200, this.#issue()) : refused()
      default:
        return asked.get('client_secret') === 'secret-of-the-client'
          ? json(200, this.#issue())
          : json(401, { error: 'invalid_client' })
    }
  }

  #issue() {
    const [access_token, refresh_token] = ['access', 'refresh'].map(
      (kind) => `${kind}-${randomBytes(12).toString('hex')}`,
    )
    this.access.add(access_token!)
    this.refresh.add(refresh_token!)
    return { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600 }
  }
}

type Json = (status: number, value: unknown, headers?: Record<string, string>) => unknown
type Reply = { readonly response: ServerResponse; readonly json: Json }

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
