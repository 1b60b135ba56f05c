/** The dashboard behind a proxy that gives the server a path of another site. */
import { once } from 'node:events'
import http from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { openTabByForm } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const PREFIX = '/agents'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ when: 'hello', turns: [{ text: 'Hello there.' }] }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** Passes on what is below the path, without it, and has nothing else. */
async function startProxy(target: URL) {
  const pathOf = (url = '') => (url.startsWith(`${PREFIX}/`) ? url.slice(PREFIX.length) : undefined)
  const listener = http.createServer((request, response) => {
    const path = pathOf(request.url)
    if (path === undefined) return void response.writeHead(404).end()
    const { method, headers } = request
    const onward = http.request(new URL(path, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  listener.on('upgrade', (request, socket) => {
    const upstream = connect(Number(target.port), target.hostname)
    const lines = [`GET ${pathOf(request.url) ?? '/'} HTTP/1.1`]
    for (let at = 0; at < request.rawHeaders.length; at += 2)
      lines.push(`${request.rawHeaders[at]}: ${request.rawHeaders[at + 1]}`)
    upstream.write(`${lines.join('\r\n')}\r\n\r\n`)
    for (const side of [socket, upstream]) side.on('error', () => (socket.destroy(), upstream.destroy()))
    socket.pipe(upstream).pipe(socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}${PREFIX}`,
    [Symbol.asyncDispose]: async () => {
      listener.closeAllConnections()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

test('the page works below any path of a proxy, and asks for nothing outside of it', async () => {
  await using proxy = await startProxy(new URL(stage.server.url))
  const id = await stage.create({ title: 'below' })
  // It would be a misdeed to ask for something that is not below this URL.
  const { page, misdeeds } = await openTabByForm(browser, proxy.url, { hash: `#/c/${id}` })
  await page.fill('.composer textarea', 'hello')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.said:has-text("Hello there.")')
  await page.reload()
  await page.waitForSelector('.said:has-text("Hello there.")')
  // A server below another path of this host has another login.
  const names = await page.evaluate<string[]>('Object.keys(localStorage)')
  expect(names).toContain(`login ${PREFIX}/`)
  expect(names.filter((name) => !name.endsWith(` ${PREFIX}/`))).toEqual([])
  await page.goto(`${proxy.url}/docs`)
  await page.waitForSelector('text=Requests are sent with the login of this browser')
  expect(misdeeds).toEqual([])
  await page.context().close()
})
