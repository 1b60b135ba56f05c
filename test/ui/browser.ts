/** The dashboard in a real browser, as a person uses it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { BROWSERS, findCommand } from '../../scripts/provide.mjs'
import { provideDashboard } from '../../scripts/ui/build-page.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { KEY } from '../support/server.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The browser, and the page for a server that runs from the sources. */
export async function openBrowser(): Promise<Browser> {
  await provideDashboard()
  return await chromium.launch({
    executablePath: findCommand(BROWSERS)!,
    args: ['--no-sandbox'],
    timeout: PATIENCE_MS,
  })
}

export type Tab = {
  readonly page: Page
  /** What a page that behaves does not do: dialogs, exceptions, requests to elsewhere, breaches of the policy. */
  readonly misdeeds: readonly string[]
}

/** Opens the page and logs in. */
export async function openTab(
  browser: Browser,
  url: string,
  options: { key?: string; hash?: string } = {},
): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US' })
  context.setDefaultTimeout(PATIENCE_MS)
  const page = await context.newPage()
  const misdeeds = watch(page, url)
  await page.goto(`${url}/ui/${options.hash ?? ''}`)
  await page.fill('[name=password]', options.key ?? KEY)
  await page.click('button[type=submit]')
  await page.waitForSelector('nav.places')
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
  await page.evaluate(AXE)
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run(document, { runOnly: { type: 'tag', values: ${JSON.stringify(tags)} } })`,
  )
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`))
}

type AxeResults = { readonly violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }

/** Changes what is shown without loading the page again. */
export async function goTo(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
}
