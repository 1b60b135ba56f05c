/** The costs in a real browser: what the page shows is what the server has summed. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { goTo, openBrowser, openTab } from './browser.ts'

const TITLE = 'dear \u202Ework'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const usage = { prompt_tokens: 1000, completion_tokens: 100 }
  stage = await setStage({ replies: [{ when: 'go', turns: [{ text: 'Done.', usage }] }] }, {})
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

async function spend(model: string, fields: object): Promise<string> {
  const prices = { input_cost_per_token: 0.001, output_cost_per_token: 0.01 }
  const llm_config = { model, base_url: stage.model.baseUrl, api_key: 'scripted-model-key', ...prices }
  const id = await stage.create({ llm_config, ...fields })
  await stage.say(id, 'go')
  return id
}

test('costs are shown by model, user and label, in a chart and a table, and the dearest conversations by name', async () => {
  const first = await spend('model-a', { title: TITLE, user_id: 'ada', labels: ['night'] })
  await stage.say(first, 'go')
  const gone = await spend('model-b', { title: 'gone' })
  await stage.server.call('DELETE', `/conversations/${gone}`)

  const { page, misdeeds } = await openTab(browser, stage.server.url)
  await page.click('text=Today costs $6.00 so far')
  await page.waitForSelector('h1:has-text("Costs")')
  await page.waitForSelector('.sums >> text=$6.00')
  expect(await page.locator('.cost-bars rect').count()).toBe(2)
  expect(await page.locator(`a[href="#/c/${first}"]`).innerText()).toBe('dear ⟦U+202E⟧work')
  await page.waitForSelector(`li:has-text("${gone}"):has-text("deleted") >> text=$2.00`)

  // Without a mouse.
  await page.focus('summary')
  await page.keyboard.press('Enter')
  await page.waitForSelector('th:has-text("model-a")')
  expect(await page.locator('table.amounts tbody tr').count()).toBe(30)
  expect(await page.locator('table.amounts tbody tr').last().locator('td').allInnerTexts()).toEqual([
    '$4.00',
    '$2.00',
    '$6.00',
  ])

  await page.selectOption('select >> nth=1', 'user_id')
  await page.waitForSelector('h2:has-text("Cost by user")')
  await page.waitForSelector('li:has-text("ada") >> text=$4.00')
  await page.waitForSelector('li:has-text("no user") >> text=$2.00')
  await page.selectOption('select >> nth=0', '1')
  await page.waitForSelector('li:has-text("ada") >> text=$4.00')

  await goTo(page, '#/settings')
  await page.selectOption('select >> nth=0', 'de')
  await goTo(page, '#/costs')
  await page.waitForSelector('h2:has-text("Die teuersten Unterhaltungen")')
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('an error that has characters that nobody sees is shown with their numbers', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  const body = JSON.stringify({ error: 'invalid_request', message: 'not \u202Etxt.exe\u200B' })
  await page.route('**/usage?*', (route) => route.fulfill({ status: 400, contentType: 'application/json', body }))
  await goTo(page, '#/costs')
  await page.waitForSelector('[role=alert]:has-text("not ⟦U+202E⟧txt.exe⟦U+200B⟧")')
  await page.route('**/conversations/summaries?*', (route) =>
    route.fulfill({ status: 400, contentType: 'application/json', body }),
  )
  await goTo(page, '#/server')
  await page.click('text=Pause all agents')
  await page.waitForSelector('.notice:has-text("not ⟦U+202E⟧txt.exe⟦U+200B⟧")')
  expect(misdeeds).toEqual([])
  await page.context().close()
})
