/** The files of a conversation: a directory of any size is read to its end, and found in. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { makeWorkdir } from '../../bench/dashboard-pages.ts'
import { setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const COUNT = 2500

let browser: Browser
let stage: Stage
let workdir: string
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [] })
  workdir = mkdtempSync(join(tmpdir(), 'files-'))
  mkdirSync(join(workdir, 'many'))
  for (let place = 0; place < COUNT; place++) writeFileSync(join(workdir, 'many', nameAt(place)), '')
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
  rmSync(workdir, { recursive: true })
})

const nameAt = (place: number) => `file-${String(place).padStart(5, '0')}.txt`

/** Shows the last drawn row first, until the row is there: no row between two looks is passed. Returns the names that were seen. */
async function scrollTo(page: Page, name: string): Promise<Set<string>> {
  const seen = new Set<string>()
  await expect
    .poll(async () => {
      const names = await page.evaluate<string[]>(`(() => {
        const drawn = [...document.querySelectorAll('.files .scroller .name')]
        drawn.at(-1)?.scrollIntoView({ block: 'start' })
        return drawn.map((row) => row.innerText)
      })()`)
      for (const one of names) seen.add(one)
      return names.includes(name)
    })
    .toBe(true)
  return seen
}

test('a directory of thousands of files is read on while somebody scrolls, and none is left out', async () => {
  const id = await stage.create({ workdir })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  await page.click('.files button:has-text("many")')
  await page.waitForSelector(`text=${nameAt(0)}`)
  const seen = await scrollTo(page, nameAt(COUNT - 1))
  expect(seen.size).toBe(COUNT)
  expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(1500)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a search that finds more than it shows says so, and more of the name finds the file', async () => {
  const id = await stage.create({ workdir })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  await page.fill('main [type=search]', 'file-')
  await page.waitForSelector('text=These are 200 of them, and there may be more.')
  await page.fill('main [type=search]', nameAt(COUNT - 1))
  await page.waitForSelector(`.files button:has-text("many/${nameAt(COUNT - 1)}")`)
  expect(await page.locator('text=there may be more').count()).toBe(0)
  await page.context().close()
})

test('of a file of 64 MiB and of a diff of 100,000 lines, the page has only what it shows', async () => {
  const home = mkdtempSync(join(tmpdir(), 'files-large-'))
  const id = await stage.create({ workdir: makeWorkdir(home) })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  let bytes = 0
  page.on('response', (response) => {
    if (response.url().includes('large.log')) bytes += Number(response.headers()['content-length'] ?? Infinity)
  })
  await page.click('.files button:has-text("large.log")')
  await page.waitForSelector('pre:has-text("yyyy")')
  await page.waitForSelector('text=This is the beginning of a large file.')
  expect(bytes).toBeLessThan(1_000_000)
  await goTo(page, `#/c/${id}/changes`)
  await page.waitForSelector('.diff-line')
  expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(1500)
  // More files are read meanwhile.
  await expect
    .poll(async () => {
      await page.evaluate(`document.querySelector('main .scroller').scrollTo(0, 1e9)`)
      return await page.locator('.file-head:has-text("large.log")').count()
    })
    .toBe(1)
  expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(1500)
  expect(misdeeds).toEqual([])
  await page.context().close()
  rmSync(home, { recursive: true })
})
