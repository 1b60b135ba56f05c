/** /docs and /openapi.json as a browser meets them. */
import { afterAll, describe, expect, test } from 'vitest'
import { pageRoutes } from '../../src/http/docs.ts'
import { setHttp } from '../http/fixtures.ts'

const http = await setHttp()
const { app } = http
await app.register(pageRoutes)
afterAll(() => http[Symbol.asyncDispose]())

describe('the page', () => {
  test('loads only from this server, and its content security policy enforces that', async () => {
    const { body, headers } = await app.inject('/docs')
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(body).not.toMatch(/https?:|<script>|style=| on\w+=/)
    expect(headers['content-security-policy']).toMatch(/default-src 'none';.*script-src 'self';style-src 'self'/)
    expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:/)
  })

  test.each([
    ['docs/swagger-ui.css', 'text/css; charset=utf-8'],
    ['docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
    ['docs/start.js', 'text/javascript; charset=utf-8'],
    ['docs/favicon-32x32.png', 'image/png'],
  ])('loads %s', async (path, type) => {
    expect((await app.inject('/docs')).body).toContain(`"${path}"`)
    const { statusCode, headers, rawPayload } = await app.inject(`/${path}`)
    expect({ statusCode, type: headers['content-type'] }).toEqual({ statusCode: 200, type })
    expect(rawPayload.length).toBeGreaterThan(100)
  })

  test('keeps the key that is typed into it in the session storage only', async () => {
    const { body } = await app.inject('/docs/start.js')
    expect(body).toContain('persistAuthorization: false')
    expect(body.replaceAll('localStorage.getItem', '')).not.toContain('localStorage')
  })

  test('is at /docs, not /docs/, where its relative links would be wrong', async () => {
    expect((await app.inject('/docs/')).headers['location']).toBe('../docs')
  })
})

test('the document is JSON and has a title', async () => {
  const answer = await app.inject('/openapi.json')
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(answer.json()).toMatchObject({ openapi: '3.1.0', info: { title: 'agent-server' } })
})

describe('/', () => {
  test('shows a browser a page whose links all work without a key, under the same rules as /docs', async () => {
    const { body, headers } = await app.inject({ url: '/', headers: { accept: 'text/html,*/*;q=0.8' } })
    expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', vary: 'Accept' })
    const { headers: docs } = await app.inject('/docs')
    for (const name of ['content-security-policy', 'x-content-type-options', 'x-frame-options', 'referrer-policy'])
      expect(headers[name], name).toBe(docs[name])
    const links = [...body.matchAll(/href="([^"]+)"/g)].map(([, path]) => path!)
    expect(links).toEqual(expect.arrayContaining(['docs', 'openapi.json', 'alive', 'ready']))
    for (const path of links) expect((await app.inject(`/${path}`)).statusCode, path).toBe(200)
  })

  test('returns the links as JSON to other clients', async () => {
    const { headers, body } = await app.inject('/')
    expect(headers['content-type']).toMatch(/^application\/json/)
    expect(JSON.parse(body)).toMatchObject({ name: 'agent-server', links: { docs: '/docs', ready: '/ready' } })
  })
})
