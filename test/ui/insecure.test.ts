/** The dashboard over http from another machine, where browsers send no `Sec-Fetch-Site`, and keep some of their parts back. */
import { expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { goTo, launchBrowser, openTabByForm } from './browser.ts'

const HOST = 'agents.example.org'

test('a person works with a login that the operator permits there', async () => {
  await using stage = await setStage(
    { replies: [{ when: 'hello', turns: [{ text: 'Hello there.' }] }] },
    { env: { OPENHANDS_INSECURE_LOGIN: 'true' } },
  )
  const browser = await launchBrowser(`--host-resolver-rules=MAP ${HOST} 127.0.0.1`)
  const id = await stage.create({ title: 'from another machine' })
  const { page, misdeeds } = await openTabByForm(browser, stage.server.url.replace('127.0.0.1', HOST), {
    hash: `#/c/${id}`,
  })
  await page.fill('.composer textarea', 'hello')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.said:has-text("Hello there.")')
  // It has come over the socket.
  expect(await page.locator('.lost').count()).toBe(0)
  await page.locator('summary').first().click()
  await page.waitForSelector('button:has-text("Fork from here")')
  expect(await page.locator('button:has-text("Copy as curl")').count()).toBe(0)
  await goTo(page, '#/server')
  await page.fill('[name=name]', 'daily')
  await page.click('button:has-text("Make a key")')
  await page.waitForSelector('.shown-once .secret')
  expect(await page.locator('.shown-once button').count()).toBe(0)
  await goTo(page, '#/settings')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  expect(misdeeds).toEqual([])
  await browser.close()
})
