/** Costs and webhooks in a real browser: what the page shows is what the server has summed, or could not deliver. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { startReceiver } from '../support/receiver.ts'
import { accessibilityFaults, goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const TITLE = 'dear \u202Ework'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const usage = { prompt_tokens: 1000, completion_tokens: 100 }
  stage = await setStage(
    { replies: [{ when: 'go', turns: [{ text: 'Done.', usage }] }] },
    { env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' } },
  )
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
  expect(await page.locator('.cost-bars title').count()).toBe(30)
  expect(await page.locator('.cost-bars title').last().textContent()).toMatch(/\d{4}: \$6\.00$/)
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

test('webhooks that fail come first, with why, and are tested, tried again and delivered again', async () => {
  await using receiver = await startReceiver(() => 500)
  const id = await stage.create({ title: 'hooked' })
  const path = `/conversations/${id}/callbacks`
  const { body: made } = await stage.server.call('POST', path, { url: receiver.url })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'hello' })
  await receiver.untilReceived((all) => all.length > 0)
  await expect.poll(async () => (await stage.server.call('GET', `${path}/${made.id}`)).body.failing_since).toBeDefined()

  const { page, misdeeds } = await openTab(browser, stage.server.url)
  // As if the event before had been skipped.
  let isSkipped = true
  await page.route('**/callbacks?failing=true*', async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    const [state] = body.items
    if (isSkipped) state.failed = [{ ...state.pending, seq: 1, status: 'failed' }]
    await route.fulfill({ response, json: body })
  })
  await page.setViewportSize({ width: 360, height: 800 })
  await goTo(page, '#/server')
  await page.click('main >> text=Webhooks')
  await page.waitForSelector(`h2:has-text("Failing") + ul >> text=${receiver.url}`)
  await page.waitForSelector('.webhook >> text=(UserMessage): answered 500')
  await page.waitForSelector('.webhook >> text=/Next attempt: /')
  expect(await accessibilityFaults(page)).toEqual([])
  await page.click('.webhook >> text=Test')
  await page.waitForSelector('.notice.fault:has-text("The test was not delivered: answered 500")')
  const asked = page.waitForRequest('**/redeliver')
  await page.click('.webhook >> text=Deliver again from event 1')
  expect((await asked).postDataJSON()).toEqual({ from_seq: 1 })

  receiver.answer = () => 204
  isSkipped = false
  await page.click('.webhook >> text=Test')
  await page.waitForSelector('.notice:has-text("The test was delivered.")')
  await expect.poll(async () => (await stage.server.call('GET', `${path}/${made.id}`)).body.cursor).toBeGreaterThan(1)
  await page.reload()
  await page.waitForSelector('text=No webhook fails.')
  await page.waitForSelector(`h2:has-text("Others") + ul >> text=${receiver.url}`)
  expect(misdeeds).toEqual([])
  await page.context().close()
})
