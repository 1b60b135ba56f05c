/**
 * Imports each test file as any other module. Vitest puts the time of day into the URL, to import a changed file again:
 * no cache of Node knows such a module.
 */
import { pathToFileURL } from 'node:url'
import { TestRunner } from 'vitest'

/** How often this process has imported a file. */
const imports = new Map<string, number>()

export default class extends TestRunner {
  /** A file of the setup runs again for each test file, and a test file for each project, so each time has its own URL. */
  override importFile(path: string): unknown {
    const count = imports.get(path) ?? 0
    imports.set(path, count + 1)
    return import(`${pathToFileURL(path).href}${count === 0 ? '' : `?${count}`}`)
  }
}
