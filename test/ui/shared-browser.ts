/**
 * The browser that the files of a worker use one after the other: to start one takes longer than most tests. A test has a
 * context, which shares nothing with others. The end of the test run ends the browser.
 */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { inject } from 'vitest'
import { override } from '../support/override.ts'
import { launchBrowser } from './browser.ts'

let shared: Browser | undefined

/** Returns the browser of this worker. To close it ends the contexts that tests have left, and nothing else. */
export async function openBrowser(): Promise<Browser> {
  // One that has crashed is not connected.
  if (!shared?.isConnected()) shared = await startShared()
  const browser = shared
  return override(browser, {
    close: async () => void (await Promise.all(browser.contexts().map((context) => context.close()))),
  })
}

/** Starts it with a directory that outlives the test file. */
async function startShared(): Promise<Browser> {
  const ofFile = process.env['TMPDIR']
  process.env['TMPDIR'] = mkdtempSync(join(inject('temporary'), 'b-'))
  try {
    return await launchBrowser()
  } finally {
    if (ofFile === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = ofFile
  }
}
