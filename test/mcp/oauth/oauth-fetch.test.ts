/** Requests to authorization servers. */
import { expect, test } from 'vitest'
import { createOauthFetch as create } from '../../../src/mcp/transports/oauth-fetch.ts'
import { createShowText } from '../../../src/mcp/tools/shown-text.ts'
import type { UrlFetch } from '../../../src/security/guarded-fetch.ts'

const URL = 'https://login.example.com/token'
const never = new AbortController().signal
const redact = (text: string) => text.replaceAll('secret-of-the-conversation', '<secret>')
const show = createShowText({ redact, redactCutOff: redact })
const createOauthFetch = (fetch: UrlFetch, signal: AbortSignal) => create(fetch, signal, show)
const refresh = () => ({
  method: 'POST',
  body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'a-refresh-token' }),
})

test('requests that are refused at the same time use a refresh token once', async () => {
  let count = 0
  const fetch = createOauthFetch(async () => Response.json({ access_token: `token-${++count}` }), never)
  const answers = await Promise.all([fetch(URL, refresh()), fetch(URL, refresh())])
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([
    { access_token: 'token-1' },
    { access_token: 'token-1' },
  ])
  expect(await (await fetch(URL, refresh())).json()).toEqual({ access_token: 'token-2' })
})

test('an error repeats nothing secret of the request, however it is written', async () => {
  const body = { grant_type: 'refresh_token', refresh_token: 'a+refresh/token=', client_secret: 'secret of the client' }
  const sent = new URLSearchParams(body)
  const text = `${sent.toString()} ${JSON.stringify(body)} ${btoa('client:another-secret')} another-secret`
  const fetch = createOauthFetch(async () => new Response(text, { status: 400 }), never)
  const headers = { authorization: `Basic ${btoa('client:another-secret')}` }
  const shown = await (await fetch(URL, { method: 'POST', headers, body: sent })).text()
  for (const value of Object.values(body).slice(1)) expect(shown).not.toContain(value)
  for (const value of ['a%2Brefresh%2Ftoken', 'secret+of+the+client', 'another-secret', btoa('client:another-secret')])
    expect(shown).not.toContain(value)
})

test.each([200, 400])(
  'an error with the status %i shows no secret that JSON escapes or the conversation has',
  async (status) => {
    const sent = 'refresh/token-of-it'
    const description = `${sent} secret-of-the-conversation \u{9b}31m`
    const escaped = JSON.stringify({ error: 'server_error', error_description: description, more: sent })
      .replaceAll('/', '\\/')
      .replaceAll('-', '\\u002d')
    const fetch = createOauthFetch(async () => new Response(escaped, { status }), never)
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: sent })
    const answer = await fetch(URL, { method: 'POST', body })
    expect([answer.status, await answer.json()]).toEqual([
      status,
      { error: 'server_error', error_description: '<secret> <secret> 31m' },
    ])
  },
)

test('an answer that is not JSON, or has no end, is not quoted', async () => {
  const html = createOauthFetch(async () => new Response('access_token=abcdefgh'), never)
  await expect(html(URL)).rejects.toThrow(/^its authorization server answered with something else than JSON$/)
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(100_000)) })
  const fetch = createOauthFetch(async () => new Response(endless), never)
  await expect(fetch(URL)).rejects.toThrow(/more than 1048576 bytes/)
})
