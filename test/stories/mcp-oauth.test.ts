/** MCP servers that ask for OAuth: a real authorization server, a user with a browser, and attacks on both. */
import { execFileSync } from 'node:child_process'
import { afterAll, expect, test } from 'vitest'
import { OauthServer } from '../mcp/children/oauth-server.ts'
import { setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

const DONE = { text: 'Done.' }
const oauth = await OauthServer.start()
const stage = await setStage(
  {
    replies: [
      { when: 'echo', turns: [{ calls: [{ name: 'mcp__safe__echo', arguments: {} }] }, DONE] },
      { turns: [DONE] },
    ],
  },
  { env: { OPENHANDS_MCP_ALLOW: '127.0.0.1' } },
)
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await oauth[Symbol.asyncDispose]()
})
const { server } = stage

const create = (mode: string, more: object = {}, fields: object = {}) =>
  stage.create({ mcp: { mcpServers: { safe: { url: oauth.mcpUrl(mode), ...more } } }, ...fields })
/** Its end is awaited: a run waits for a slow connection for some seconds only. */
const viewOf = (id: string) =>
  until('the end of the connection', async () => {
    const [view] = (await server.call('GET', `/conversations/${id}/mcp`)).body.items
    return view.status !== 'connecting' && view
  })
const resultOf = async (id: string) => (await stage.say(id, 'echo')).find(({ type }) => type === 'ToolResult')
/** Where the browser of a user who agrees is sent back to. */
const agree = async (address: string) =>
  new URL((await fetch(address, { redirect: 'manual' })).headers.get('location') ?? '')
async function authorized(mode: string, more: object = {}): Promise<string> {
  const id = await create(mode, more)
  await stage.say(id, 'nothing')
  const back = await fetch(await agree((await viewOf(id)).authorization_url))
  expect([back.status, await back.text()]).toEqual([200, expect.stringContaining('is authorized')])
  return id
}
const bodyOf = (back: URL, changes: object = {}) => {
  const { code, state, iss } = Object.fromEntries(back.searchParams)
  return { code, state, iss, ...changes }
}

test('a user authorizes a server in a browser; its tokens are encrypted at rest and outlive the server', async () => {
  const id = await create('plain', { headers: { 'X-Own': 'for-the-mcp-server' } })
  await stage.say(id, 'nothing')
  const view = await viewOf(id)
  expect(view).toMatchObject({
    status: 'needs_auth',
    authorization_url: expect.stringContaining(`${oauth.authorityUrl}/plain/`),
  })
  const { searchParams } = new URL(view.authorization_url)
  expect(searchParams.get('redirect_uri')).toBe(`${server.url}/mcp/oauth/callback`)
  expect(searchParams.get('code_challenge_method')).toBe('S256')
  // Another run does not ask again.
  expect((await resultOf(id)).output).toContain('user has to authorize')
  expect((await viewOf(id)).authorization_url).toBe(view.authorization_url)
  const updates = await stage.events(id, 'types=McpServerUpdate')
  expect(updates).toMatchObject([{ status: 'needs_auth', authorization_url: view.authorization_url }])

  const back = await agree(view.authorization_url)
  expect((await fetch(back)).status).toBe(200)
  expect(await viewOf(id)).toMatchObject({ status: 'connected' })
  expect((await viewOf(id)).authorization_url).toBeUndefined()
  expect((await resultOf(id)).output).toContain('called with <')
  // Its own headers are not for the authorization server.
  const toAuthority = oauth.seen.filter(({ path }) => /^\/plain\/(token|register)/.test(path))
  expect(toAuthority).toHaveLength(2)
  for (const { headers } of toAuthority) expect(headers['x-own']).toBeUndefined()

  const registered = oauth.seen.filter(({ path }) => path === '/plain/register').length
  await server.restart('SIGKILL')
  await stage.say(id, 'nothing')
  expect(await viewOf(id)).toMatchObject({ status: 'connected' })
  expect(await resultOf(id)).toMatchObject({ is_error: false })
  expect(oauth.seen.filter(({ path }) => path === '/plain/register')).toHaveLength(registered)
  const shown = JSON.stringify(await stage.events(id)) + server.output()
  for (const token of [...oauth.access, ...oauth.refresh]) {
    expect(shown).not.toContain(token)
    expect(found(token)).toEqual('')
  }
  const fork = (await server.call('POST', `/conversations/${id}/fork`, {})).body.id
  await stage.say(fork, 'nothing')
  expect(await viewOf(fork)).toMatchObject({ status: 'needs_auth' })
})

/** Files of the server with this text. */
function found(text: string): string {
  try {
    return execFileSync('grep', ['-rl', text, server.home], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

test('a token that has expired is refreshed, and one that was revoked needs the user again', async () => {
  const id = await authorized('plain')
  oauth.access.clear()
  expect(await resultOf(id)).toMatchObject({ is_error: false })
  oauth.access.clear()
  oauth.refresh.clear()
  const result = await resultOf(id)
  expect(result).toMatchObject({ is_error: true, output: expect.stringContaining('has to authorize it first') })
  await expect.poll(async () => (await viewOf(id)).status).toBe('needs_auth')
  const back = await agree((await viewOf(id)).authorization_url)
  const { body } = await server.call('POST', `/conversations/${id}/mcp/safe/authorize`, bodyOf(back))
  expect(body).toMatchObject({ name: 'safe', status: 'connected' })
})

test('a state is valid once, for its conversation and its server only', async () => {
  const [id, other] = [await create('plain'), await create('plain')]
  await Promise.all([stage.say(id, 'nothing'), stage.say(other, 'nothing')])
  const back = await agree((await viewOf(id)).authorization_url)
  const refused = { status: 409, body: { error: 'mcp_authorization_failed' } }
  const post = (to: string, body: object) => server.call('POST', `/conversations/${to}/mcp/safe/authorize`, body)
  expect(await post(other, bodyOf(back))).toMatchObject(refused)
  expect(await post(id, bodyOf(back, { state: 'guessed' }))).toMatchObject(refused)
  expect((await fetch(`${server.url}/mcp/oauth/callback?code=x&state=guessed`)).status).toBe(409)
  expect((await fetch(`${server.url}/mcp/oauth/callback`)).status).toBe(409)
  // None of this has used it up.
  expect((await fetch(back)).status).toBe(200)
  expect((await fetch(back)).status).toBe(409)
  expect((await viewOf(other)).status).toBe('needs_auth')
})

test('a code of another authorization server is not used, and the user is asked again', async () => {
  const id = await create('mixed')
  await stage.say(id, 'nothing')
  const first = (await viewOf(id)).authorization_url
  const back = await agree(first)
  back.searchParams.set('iss', `${oauth.resourceUrl}/evil`)
  const answer = await fetch(back)
  expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('Issuer mismatch')])
  expect(oauth.tokenRequests('mixed')).toEqual([])
  await expect.poll(async () => (await viewOf(id)).authorization_url ?? first).not.toBe(first)
  const denied = new URL(`${server.url}/mcp/oauth/callback`)
  const state = new URL((await viewOf(id)).authorization_url).searchParams.get('state') ?? ''
  denied.search = String(new URLSearchParams({ error: 'access_denied', state, iss: `${oauth.authorityUrl}/mixed` }))
  expect(await (await fetch(denied)).text()).toContain('access_denied')
})

test('a client is authorized by its own secret, which the conversation has by name', async () => {
  const client = { grant: 'client_credentials', client_id: 'program', client_secret: '${CLIENT_SECRET}' }
  const id = await create('plain', { oauth: client }, { secrets: { CLIENT_SECRET: 'secret-of-the-client' } })
  await stage.say(id, 'nothing')
  expect(await viewOf(id)).toMatchObject({ status: 'connected' })
  expect(await resultOf(id)).toMatchObject({ is_error: false })
  expect((await server.call('GET', `/conversations/${id}`)).body.mcp.mcpServers.safe.oauth).toEqual(client)
  const literal = { ...client, client_secret: 'a-secret-that-is-wrong' }
  const wrong = await create('echoes', { oauth: literal })
  await stage.say(wrong, 'nothing')
  const view = await viewOf(wrong)
  expect(view.status).toBe('failed')
  expect((await server.call('GET', `/conversations/${wrong}`)).body.mcp.mcpServers.safe.oauth.client_secret).toBe(
    '**********',
  )
  expect(JSON.stringify([view, await stage.events(wrong)])).not.toContain('a-secret-that-is-wrong')
  const elsewhere = await create('plain', { oauth: { ...literal, issuer: 'https://login.example.com' } })
  await stage.say(elsewhere, 'nothing')
  expect(await viewOf(elsewhere)).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('login.example.com'),
  })
  expect(
    oauth.seen.some(({ body }) => body.includes('a-secret-that-is-wrong') && !body.includes('client_credentials')),
  ).toBe(false)
})

test('an error of the token endpoint that repeats the request shows no code of it', async () => {
  const id = await create('echoes')
  await stage.say(id, 'nothing')
  const back = await agree((await viewOf(id)).authorization_url)
  const answer = await fetch(back)
  const said = (await answer.text()) + JSON.stringify(await stage.events(id)) + server.output()
  expect(answer.status).toBe(409)
  // The client of another test may have asked for a token since.
  const request = oauth.tokenRequests('echoes').findLast((each) => each.has('code'))
  for (const name of ['code', 'code_verifier']) expect(said).not.toContain(request?.get(name))
})

test.each([
  ['redirects', /./],
  ['inside', /not a public one/],
  ['impostor', /Issuer mismatch/],
  ['script', /./],
  ['huge', /more than 1048576 bytes/],
])('a server whose authorization server %s is not used', async (mode, error) => {
  const id = await create(mode)
  await stage.say(id, 'nothing')
  const view = await viewOf(id)
  expect(view).toMatchObject({ status: 'failed', error: expect.stringMatching(error) })
  expect(view.authorization_url).toBeUndefined()
})
