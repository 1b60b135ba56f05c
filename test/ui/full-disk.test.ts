/** A server whose disk is full: the page says so, keeps what a person has written, and works again once there is room. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'ask', turns: [bash('touch made'), { text: 'It is made.' }] },
    { when: 'hello', turns: [{ text: 'Hello there.' }] },
  ]
  stage = await setStage({ replies }, {})
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** A limit on the size of files fails writes as a full disk does. */
const limitFiles = async (bytes: string) =>
  await promisify(execFile)('prlimit', ['--pid', String(stage.server.pid), `--fsize=${bytes}:unlimited`])

test('what cannot be stored is said, and nothing that was written or asked is lost', async () => {
  const asking = await stage.create({ title: 'asks', permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${asking}/messages`, { message: 'ask', run: true })
  const id = await stage.create({ title: 'written' })
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  const { page: other } = await openTab(browser, stage.server.url)
  await goTo(other, '#/settings')
  await other.click('text=Log out')
  await page.waitForSelector('[data-request]')
  await limitFiles('1')

  await page.click('[data-request] button:has-text("Allow"):enabled')
  await page.waitForSelector('[data-request] .fault:has-text("no room")')
  expect(await page.locator('[data-request]').count()).toBe(1)
  await goTo(page, `#/c/${id}`)
  await page.fill('.composer textarea', 'hello')
  await page.click('.composer button')
  await page.waitForSelector('.notice.fault')
  expect(await page.inputValue('.composer textarea')).toBe('hello')
  await page.click('.notice.fault [aria-label=Close]')
  await page.waitForSelector('.notice.fault', { state: 'detached' })
  await goTo(page, `#/c/${id}/settings`)
  await page.fill('[name=title]', 'renamed')
  await page.click('button:has-text("Save")')
  await page.waitForSelector('.notice.fault')
  expect(await page.inputValue('[name=title]')).toBe('renamed')
  await other.fill('[name=password]', KEY)
  await other.click('button[type=submit]')
  await other.waitForSelector('form [role=alert]')

  await limitFiles('unlimited')
  await page.click('button:has-text("Save"):enabled')
  await page.waitForSelector('h1:has-text("renamed")')
  await goTo(page, `#/c/${id}`)
  await page.click('.composer button')
  await page.waitForSelector('.said:has-text("Hello there.")')
  expect(await page.locator('.said.user').count()).toBe(1)
  await goTo(page, '#/')
  await page.click('[data-request] button:has-text("Allow"):enabled')
  await expect.poll(() => page.locator('[data-request]').count()).toBe(0)
  await other.click('button[type=submit]')
  await other.waitForSelector('nav.places')
  expect(misdeeds).toEqual([])
  for (const each of [page, other]) await each.context().close()
})
