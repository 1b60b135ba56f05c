/** What a browser loads of the dashboard, and how the server sends it. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { provideDashboard } from '../../scripts/ui/build-page.ts'
import { pageFolder } from '../../src/http/assets.ts'
import { borrowServer } from '../support/shared-server.ts'
import type { TestServer } from '../support/server.ts'

let server: TestServer
let modules: readonly string[]
beforeAll(async () => {
  modules = await provideDashboard()
  server = await borrowServer()
  return () => server[Symbol.asyncDispose]()
})

const KILOBYTE = 1000

test('the page has no schemas', () => {
  expect(modules.filter((path) => path.includes('/node_modules/zod/'))).toEqual([])
})

test('the first screen is at most 75 kB, and everything at most 300 kB, with gzip', () => {
  const sizeOf = (name: string) => statSync(join(pageFolder(), name)).size
  const page = gunzipSync(readFileSync(join(pageFolder(), 'index.html.gz'))).toString()
  const first = [...page.matchAll(/(?:src|href)="([^"/]+)"/g)].map(([, name]) => `${name}.gz`)
  expect(first.length).toBeGreaterThan(2)
  expect(first.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(75 * KILOBYTE)
  const all = readdirSync(pageFolder()).filter((name) => name.endsWith('.gz'))
  expect(all.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(300 * KILOBYTE)
})

test('the executable has at most 0.4 MB of the page', () => {
  const sizes = readdirSync(pageFolder()).map((name) => statSync(join(pageFolder(), name)).size)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(400 * KILOBYTE)
})

test('files are sent compressed and are cached permanently, the page that names them is not', async () => {
  const page = await fetch(`${server.url}/ui/`, { headers: { 'accept-encoding': 'br' } })
  expect(page.headers.get('content-encoding')).toBe('br')
  expect(page.headers.get('cache-control')).toBe('no-cache')
  // It names other files after an upgrade, whatever name it was asked for by.
  expect((await fetch(`${server.url}/ui/index.html`)).headers.get('cache-control')).toBe('no-cache')
  const [, script] = /src="(main-[\w-]+\.js)"/.exec(await page.text())!
  const file = await fetch(`${server.url}/ui/${script}`, { headers: { 'accept-encoding': 'gzip' } })
  expect(file.headers.get('content-encoding')).toBe('gzip')
  expect(file.headers.get('cache-control')).toContain('immutable')
  const plain = await fetch(`${server.url}/ui/${script}`, { headers: { 'accept-encoding': 'identity' } })
  expect(plain.headers.get('content-encoding')).toBeNull()
  const text = await plain.text()
  expect(text).toBe(await file.text())
  const brotli = await fetch(`${server.url}/ui/${script}`, { headers: { 'accept-encoding': 'br' } })
  expect(await brotli.text()).toBe(text)
})

test('only the files of the build are served, and without a slash the page is found, too', async () => {
  expect((await fetch(`${server.url}/ui`)).url).toBe(`${server.url}/ui/`)
  for (const path of ['none.js', '..%2fopenapi%2fopenapi.json', 'index.html.br', 'main.ts'])
    expect((await fetch(`${server.url}/ui/${path}`)).status).toBe(404)
})

test('the page can be installed', async () => {
  const [, name] = /rel="manifest" href="([^"]+)"/.exec(await (await fetch(`${server.url}/ui/`)).text())!
  const manifest = (await (await fetch(`${server.url}/ui/${name}`)).json()) as Record<string, unknown> & {
    readonly icons: readonly { readonly src: string }[]
  }
  expect(manifest).toMatchObject({ name: 'agent-server', display: 'standalone' })
  expect((await fetch(new URL(manifest.icons[0]!.src, `${server.url}/ui/`))).status).toBe(200)
  // Below any path of a proxy.
  expect(manifest).toMatchObject({ start_url: './' })
})

test('the policy of the page allows no code and no connection but its own', async () => {
  const { headers } = await fetch(`${server.url}/ui/`)
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  )
  expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
})
