/** The timeline: what took time, in a range that a person takes, and what of it failed. */
import * as fc from 'fast-check'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TimeSpan } from '../../src/ui/state/timeline.ts'
import { bucketsOf, FoldedAxis } from '../../src/ui/state/timeline.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const span = (start: number, ms: number, kind: TimeSpan['kind'] = 'tool', isFailed = false): TimeSpan => ({
  key: `${start}`,
  seq: 1,
  kind,
  name: '',
  start,
  ms,
  isFailed,
})
const HOUR = 3_600_000

describe('the axis', () => {
  test('gives work its length, and hours of waiting no more than a fiftieth of it', () => {
    const spans = [span(0, 50_000), span(50_000, 3 * HOUR, 'pause'), span(3 * HOUR + 50_000, 50_000, 'model')]
    const axis = new FoldedAxis(spans)
    expect(axis.placeOf(50_000)).toBeCloseTo(50 / 102)
    expect(axis.placeOf(3 * HOUR + 50_000)).toBeCloseTo(52 / 102)
    expect(axis.timeAt(1)).toBe(3 * HOUR + 100_000)
    const buckets = bucketsOf(spans, axis, 102)
    expect(buckets.slice(1, 49).every(({ kind, share }) => kind === 'tool' && share > 0.99)).toBe(true)
    expect(buckets[51]).toMatchObject({ kind: 'pause', share: 0 })
    expect(buckets.slice(53).every(({ kind, share }) => kind === 'model' && share > 0.99)).toBe(true)
  })

  test('has each time at one place, in their order, whatever overlaps', () => {
    const spans = fc.array(fc.tuple(fc.nat(1e6), fc.nat(1e5)), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(spans, fc.array(fc.double({ min: 0, max: 1, noNaN: true })), (pairs, places) => {
        const axis = new FoldedAxis(pairs.map(([start, ms]) => span(start, ms)))
        const times = places.toSorted((a, b) => a - b).map((place) => axis.timeAt(place))
        expect(times).toEqual(times.toSorted((a, b) => a - b))
        for (const time of times) expect(axis.timeAt(axis.placeOf(time))).toBeCloseTo(time, 1)
      }),
    )
  })

  test('has nothing where nothing happened, which is not a wait', () => {
    const spans = [span(0, 1000), span(9000, 1000, 'model')]
    const kinds = bucketsOf(spans, new FoldedAxis(spans), 10).map(({ kind }) => kind)
    expect([kinds[0], kinds[5], kinds[9]]).toEqual(['tool', undefined, 'model'])
    expect(kinds).not.toContain('pause')
  })

  test('shows a failure that took no time', () => {
    const spans = [span(0, 1000), span(1000, 0, 'model', true)]
    expect(bucketsOf(spans, new FoldedAxis(spans), 10).map(({ isFailed }) => isFailed)).toEqual([
      ...Array.from({ length: 9 }, () => false),
      true,
    ])
  })
})

describe('a person', () => {
  let browser: Browser
  let stage: Stage
  let id: string
  beforeAll(async () => {
    browser = await openBrowser()
    // Each answer takes some time: one that takes none would have its place in common with what is next to it.
    const turns = [bash('sleep 0.3'), bash('sleep 0.2; exit 3'), bash('echo last'), { text: 'Done.' }].map((turn) => ({
      ...turn,
      delay_ms: 20,
    }))
    stage = await setStage({ replies: [{ when: 'work', turns }] })
    id = await stage.create({ title: 'timed' })
    await stage.say(id, 'work')
  })
  afterAll(async () => {
    await browser.close()
    await stage[Symbol.asyncDispose]()
  })

  const namesOf = (page: Page) => page.locator('.span .name').allInnerTexts()
  const ALL = [
    'scripted',
    'Bash sleep 0.3',
    'scripted',
    '✕ Bash sleep 0.2; exit 3',
    'scripted',
    'Bash echo last',
    'scripted',
  ]

  const openTimeline = async () => {
    const tab = await openTab(browser, stage.server.url, { hash: `#/c/${id}/timeline` })
    await expect.poll(() => namesOf(tab.page)).toEqual(ALL)
    return tab
  }

  test('takes a range with the mouse, sees its sums, and takes everything again', async () => {
    const { page, misdeeds } = await openTimeline()
    const sums = () => page.locator('[data-sum] strong').allInnerTexts()
    const all = await sums()
    const strip = (await page.locator('.strip').boundingBox())!
    await page.mouse.move(strip.x, strip.y + 10)
    await page.mouse.down()
    await page.mouse.move(strip.x + 5, strip.y + 10)
    await page.mouse.up()
    await expect.poll(() => namesOf(page)).not.toEqual(ALL)
    expect((await namesOf(page))[0]).toBe('scripted')
    expect(await namesOf(page)).not.toContain('Bash echo last')
    expect(await sums()).not.toEqual(all)
    await page.mouse.click(strip.x + 50, strip.y + 10)
    await expect.poll(() => namesOf(page)).toEqual(ALL)
    expect(await sums()).toEqual(all)
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('takes a range with the keyboard, and only what failed in it', async () => {
    const { page } = await openTimeline()
    await page.getByLabel('Only what failed').focus()
    await page.keyboard.press('Space')
    await expect.poll(() => namesOf(page)).toEqual(['✕ Bash sleep 0.2; exit 3'])
    await page.keyboard.press('Tab')
    // The first slider goes to the end.
    await page.keyboard.press('End')
    await page.waitForSelector('text=Nothing has failed here.')
    await page.getByLabel('Only what failed').focus()
    await page.keyboard.press('Space')
    await expect.poll(() => namesOf(page)).toEqual(['scripted'])
    await page.keyboard.press('Tab')
    await page.keyboard.press('Home')
    await expect.poll(() => namesOf(page)).toEqual(ALL)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Home')
    await expect.poll(() => namesOf(page)).toEqual(['scripted'])
    await page.locator('button:has-text("All times")').press('Enter')
    await expect.poll(() => namesOf(page)).toEqual(ALL)
    await page.locator('a.span:has-text("exit 3")').press('Enter')
    await page.waitForSelector('.tool.failed')
    await page.context().close()
  })
})
