/** The dashboard in a real browser, as a person uses it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { BROWSERS, findCommand } from '../../scripts/provide.mjs'
import { provideDashboard } from '../../scripts/ui/build-page.ts'
import { LOGIN_VALUE_NAME } from '../../src/contract/values/login-value.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Starts a browser, with more arguments, and builds the page for a server that runs from the sources. */
export async function launchBrowser(...more: readonly string[]): Promise<Browser> {
  await provideDashboard()
  return await chromium.launch({
    executablePath: findCommand(BROWSERS)!,
    args: ['--no-sandbox', ...more],
    timeout: PATIENCE_MS,
  })
}

export type Tab = {
  readonly page: Page
  /** What a page that behaves does not do: dialogs, exceptions, requests to elsewhere, breaches of the policy. */
  readonly misdeeds: readonly string[]
}

/** A notice ends after eight seconds, in which a slow machine may not get to it: here it stays until it is closed. */
const NOTICES_STAY = `{
  const { setTimeout } = globalThis
  globalThis.setTimeout = (work, ms, ...rest) => (ms === 8000 ? 0 : setTimeout(work, ms, ...rest))
}`

/** A browser that has not seen the page. */
export async function newContext(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US' })
  context.setDefaultTimeout(PATIENCE_MS)
  await context.addInitScript(NOTICES_STAY)
  return context
}

/**
 * Returns what waits until a page that is not loaded yet is connected to all conversations: it hears of all that happens
 * from then on. What happens before is in its lists, but is neither announced nor notified.
 */
export function watchConnection(page: Page): () => Promise<void> {
  let isConnected = false
  page.on('websocket', (socket) => {
    if (socket.url().includes('/firehose')) socket.on('framereceived', () => (isConnected = true))
  })
  return async () => void (await until('the connection of the page', async () => isConnected))
}

type Opening = { readonly key?: string; readonly hash?: string }

/** Opens the page with a login that the browser has: the form for it takes as long as the page. */
export async function openTab(browser: Browser, url: string, { key = KEY, hash = '' }: Opening = {}): Promise<Tab> {
  return await open(browser, url, async (page) => {
    const answer = await page.request.post(`${url}/logins`, { data: { key } })
    if (answer.status() !== 201) throw new Error(`login: ${answer.status()} ${await answer.text()}`)
    const { value } = (await answer.json()) as { value: string }
    const script = `localStorage.setItem('${LOGIN_VALUE_NAME}', '${value}')`
    await using _ = await page.addInitScript(script)
    await page.goto(`${url}/ui/${hash}`)
  })
}

/** Opens the page, and logs in as a person does. */
export async function openTabByForm(
  browser: Browser,
  url: string,
  { key = KEY, hash = '' }: Opening = {},
): Promise<Tab> {
  return await open(browser, url, async (page) => {
    await page.goto(`${url}/ui/${hash}`)
    await page.fill('[name=password]', key)
    await page.click('button[type=submit]')
  })
}

async function open(browser: Browser, url: string, logIn: (page: Page) => Promise<void>): Promise<Tab> {
  const page = await (await newContext(browser)).newPage()
  const misdeeds = watch(page, url)
  const connected = watchConnection(page)
  await logIn(page)
  await page.waitForSelector('nav.places')
  await connected()
  return { page, misdeeds }
}

function watch(page: Page, url: string): string[] {
  const misdeeds: string[] = []
  page.on('pageerror', (error) => misdeeds.push(`exception: ${error.message}`))
  page.on('dialog', (dialog) => {
    misdeeds.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(url))
      misdeeds.push(`request: ${request.url()}`)
  })
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted ?Type/i.test(message.text())) misdeeds.push(`policy: ${message.text()}`)
  })
  return misdeeds
}

/** The rules of WCAG 2.2 AA that what is shown breaks, with the elements. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  if (await page.evaluate(`!('axe' in globalThis)`)) await page.evaluate(AXE)
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  // What keeps to the rules is a hundred times as long: it stays in the page.
  const violations = await page.evaluate<Violation[]>(
    `axe.run(document, { resultTypes: ['violations'], runOnly: { type: 'tag', values: ${JSON.stringify(tags)} } })
      .then(({ violations }) => violations)`,
  )
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`))
}

type Violation = { readonly id: string; readonly nodes: { html: string; failureSummary: string }[] }

/** Changes what is shown without loading the page again. Resolves when the screen before is gone. */
export async function goTo(page: Page, hash: string): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    const before = location.href
    addEventListener('hashchange', () => done(), { once: true })
    location.hash = ${JSON.stringify(hash)}
    if (location.href === before) done()
  })`)
}
