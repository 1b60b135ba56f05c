/** What `serve` loads before it listens: each module more is time in which the port is closed. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const { href: SERVE } = new URL('../../src/cli/serve.ts', import.meta.url)

/** Prints the URLs of all modules that the import of the command loads. */
const PROGRAM = `
const urls = []
require('node:module').registerHooks({
  load(url, context, next) {
    urls.push(url)
    return next(url, context)
  },
})
import(process.argv[1]).then(() => console.log(JSON.stringify(urls)))
`

test('no package, and not the code that checks settings, is loaded before the server listens', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', PROGRAM, SERVE])
  const urls = JSON.parse(stdout) as string[]
  expect(urls.some((url) => url.endsWith('/src/http/listen.ts'))).toBe(true)
  expect(urls.filter((url) => url.includes('/node_modules/') || url.endsWith('/src/config/config.ts'))).toEqual([])
  expect(urls).not.toContain('node:crypto')
})
