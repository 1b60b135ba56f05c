/** /docs and /openapi.json as a browser meets them. */
import { afterAll, describe, expect, test } from 'vitest'
import { pageRoutes } from '../../src/http/docs.ts'
import { setHttp } from '../http/fixtures.ts'

const http = await setHttp()
const { app } = http
await app.register(pageRoutes)
afterAll(() => http[Symbol.asyncDispose]())

describe('the page', () => {
  test('loads from this server alone, and a content security policy holds it to that', async () => {
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

  test('does not keep the key that is typed into it', async () => {
    expect((await app.inject('/docs/start.js')).body).toContain('persistAuthorization: false')
  })

  test('is one level up from /docs/, where its links would lead astray', async () => {
    expect((await app.inject('/docs/')).headers['location']).toBe('../docs')
  })
})

test('the document is JSON and says what it is', async () => {
  const answer = await app.inject('/openapi.json')
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(answer.json()).toMatchObject({ openapi: '3.1.0', info: { title: 'agent-server' } })
})
