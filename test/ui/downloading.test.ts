/** Downloads of the dashboard: the browser gets the file from the server, and nothing is kept in the page. */
import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage([])
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test('a file is downloaded by a URL that works once and has no key', async () => {
  const id = await stage.create({ title: 'downloads' })
  const path = `/conversations/${id}/files/${encodeURIComponent('ü #1.txt')}`
  expect((await stage.server.call('PUT', path, 'one\n')).status).toBe(201)
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  await page.click('button:has-text("ü #1.txt")')
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('button:has-text("Download")')])
  expect(readFileSync(await download.path(), 'utf8')).toBe('one\n')
  expect(download.suggestedFilename()).toBe('ü #1.txt')
  const url = new URL(download.url())
  expect([url.origin, ...url.searchParams.keys()]).toEqual([stage.server.url, 'ticket'])
  expect((await fetch(url)).status).toBe(401)
  expect(misdeeds).toEqual([])
  await page.context().close()
})
