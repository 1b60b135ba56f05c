/** What a finger has to hit is large enough on a small screen. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const LEAST_PX = 44

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'work', turns: [bash('seq 1000 1099; exit 1'), { text: 'See https://example.com.' }] },
    { when: 'ask', turns: [bash('touch made'), { text: 'Done.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** A link in a sentence is as high as its line. A field that is in a label has the whole label. */
const smallTargets = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const small = []
    for (const element of document.querySelectorAll('button, a[href], input, select, textarea, summary')) {
      if (element.closest('.markdown, p') || !element.checkVisibility({ visibilityProperty: true })) continue
      const target = element.matches('input[type=checkbox], input[type=radio], .unseen') ? element.closest('label') : element
      const { width, height } = (target ?? element).getBoundingClientRect()
      if (width > 0 && height > 0 && (height < ${LEAST_PX} - 0.5 || width < ${LEAST_PX} - 0.5))
        small.push(Math.round(width) + 'x' + Math.round(height) + ' ' + element.outerHTML.slice(0, 120))
    }
    return small
  })()`)

/** The tab that is open is in sight, also where the tabs are wider than the screen. */
const tabsOutOfSight = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('.tabs [aria-current]')]
    .filter((tab) => tab.getBoundingClientRect().right > innerWidth || tab.getBoundingClientRect().left < 0)
    .map((tab) => 'out of sight ' + tab.outerHTML)`)

/** Text that runs over the edge of its target is over the next one. */
const crowdedTargets = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('button, a[href], summary')]
    .filter((element) => element.checkVisibility() && getComputedStyle(element).display !== 'inline')
    .filter((element) => getComputedStyle(element).overflowX === 'visible' && element.scrollWidth > element.clientWidth + 1)
    .map((element) => 'crowded ' + element.outerHTML.slice(0, 120))`)

test('every target of every screen is at least 44 pixels wide and high, has its text inside, and the open tab is in sight, 360 px wide', async () => {
  const asking = await stage.create({ title: 'asks', permission_mode: 'default', labels: ['night'] })
  await stage.server.call('POST', `/conversations/${asking}/messages`, { message: 'ask', run: true })
  const id = await stage.create({ title: 'touched' })
  await stage.say(id, 'work')
  await stage.server.call('POST', '/keys', { name: 'daily', scopes: ['read'] })
  await stage.server.call('POST', `/conversations/${id}/callbacks`, { url: 'https://example.com/hook' })
  const { page } = await openTab(browser, stage.server.url)
  await page.setViewportSize({ width: 360, height: 800 })
  const tabs = ['', '/changes', '/files', '/commands', '/timeline', '/settings'].map((tab) => `c/${id}${tab}`)
  const screens = ['', 'conversations', 'new', 'costs', 'webhooks', 'server', ...tabs, `c/${asking}`, 'settings']
  const faults: string[] = []
  for (const screen of screens) {
    await goTo(page, `#/${screen}`)
    await page.waitForSelector('h1')
    await page.waitForSelector('main >> text=Loading …', { state: 'detached' })
    const found = [...(await smallTargets(page)), ...(await crowdedTargets(page)), ...(await tabsOutOfSight(page))]
    faults.push(...found.map((target) => `${screen}: ${target}`))
  }
  expect(faults).toEqual([])
  await page.context().close()
})
