/** The screen of the server: what it does now, and the switch that pauses all agents. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [{ when: 'wait', turns: [bash('sleep 600'), { text: 'Done.' }] }]
  stage = await setStage({ replies }, { env: { OPENHANDS_MAX_CONCURRENT_RUNS: '1' } })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const statusOf = async (id: string) => (await stage.server.call('GET', `/conversations/${id}`)).body.status as string

const factsOf = (page: { innerText: (selector: string) => Promise<string> }) => page.innerText('[data-activity]')

test('a person sees which runs are at work and which wait, and streams that are open, and pauses all of them', async () => {
  const ids: string[] = []
  for (const title of ['first', 'second']) {
    const id = await stage.create({ title })
    ids.push(id)
    await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'wait', run: true })
    await expect.poll(() => statusOf(id)).toBe('running')
  }
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/server' })
  // The page follows the firehose; it knows nothing of other streams before it asks.
  await expect.poll(() => factsOf(page)).toMatch(/at work\s+1 of 1\s+Waiting for a place\s+1\s+Open streams\s+1$/)
  const other = await openTab(browser, stage.server.url)
  await expect.poll(() => factsOf(page)).toMatch(/Open streams\s+2$/)
  await other.page.context().close()
  const [working, waiting] = ids
  await goTo(page, '#/')
  await page.waitForSelector('h2:text-is("1 agent is at work, 1 waits for a place")')
  expect(await page.locator('.summary .word').allInnerTexts()).toEqual(expect.arrayContaining(['Queued', 'Running']))
  await page.route(`**/conversations/${working}`, async (route) => {
    const response = await route.fetch()
    const view = (await response.json()) as object
    await route.fulfill({ response, json: { ...view, cost_usd: 0.31, context: { used: 40, size: 200 } } })
  })
  await goTo(page, `#/c/${working}`)
  await expect
    .poll(() => page.innerText('.head .meta'))
    .toMatch(/^Bash: sleep 600\s+· .+ · \$0\.31 · 20 % of the context used$/)
  await goTo(page, `#/c/${waiting}`)
  await page.waitForSelector('.head .status:has-text("Queued")')
  await page.waitForSelector('.said.user')
  expect(await page.locator('.working, .status-running').count()).toBe(0)
  expect(await page.innerText('.head .meta')).not.toContain('Thinks')
  await goTo(page, '#/server')
  await page.click('text=Pause all agents')
  await page.waitForSelector('text=2 paused')
  for (const id of ids) await expect.poll(() => statusOf(id)).toBe('paused')
  await expect.poll(() => factsOf(page)).toMatch(/at work\s+0 of 1\s+Waiting for a place\s+0\s/)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a key that may only read sees the same, and has nothing to pause', async () => {
  const { body } = await stage.server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { key: body.key, hash: '#/server' })
  await expect.poll(() => factsOf(page)).toMatch(/at work\s+0 of 1\s+Waiting for a place\s+0\s+Open streams\s+1$/)
  expect(await page.locator('text=Pause all agents').count()).toBe(0)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('keys that are revoked one right after the other are both gone', async () => {
  const ids: string[] = []
  for (const name of ['first', 'second'])
    ids.push((await stage.server.call('POST', '/keys', { name, scopes: ['read'] })).body.id)
  const { page } = await openTab(browser, stage.server.url, { hash: '#/server' })
  await page.evaluate('globalThis.confirm = () => true')
  // The second one is revoked when the list has been read again without the first one.
  const isRevoked = Promise.withResolvers<void>()
  await page.route(`**/keys/${ids[1]}`, async (route) => {
    await isRevoked.promise
    await route.continue()
  })
  const key = (name: string) => page.locator('li').filter({ has: page.locator(`strong:text-is("${name}")`) })
  const asked = page.waitForRequest(`**/keys/${ids[1]}`)
  await key('second').locator('button').click()
  await asked
  await key('first').locator('button').click()
  await expect.poll(() => key('first').count()).toBe(0)
  isRevoked.resolve()
  await expect.poll(() => key('second').count()).toBe(0)
  await page.context().close()
})
