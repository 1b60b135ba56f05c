/**
 * `npm run check:package`: makes the npm package, checks its archive with publint and Are The Types Wrong, installs it in
 * an empty project, and compiles and runs a program there, with the oldest supported Node. Lets lintian and Ruby read the
 * packages of a release.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { useOwnTemporary } from './own-temporary.ts'
import { provideToolchain } from './clients/toolchains.ts'
import { faultsOfArchive } from './package/archive-faults.ts'
import { tryInProject } from './package/consumer-project.ts'
import { makePackage } from './package/make-package.ts'
import { faultsOfRelease } from './package/release-faults.ts'

useOwnTemporary()
const started = performance.now()
const seconds = () => `${((performance.now() - started) / 1000).toFixed(0).padStart(3)} s`
const say = (text: string) => process.stdout.write(`${seconds()} ${text}\n`)

const work = mkdtempSync(join(tmpdir(), 'check-package-'))
try {
  const { archive, bytes } = await makePackage()
  say(`${archive}: ${(bytes / 1000).toFixed(0)} kB`)
  const faults = await faultsOfArchive(archive, bytes)
  say('the archive was checked')
  faults.push(...faultsOfRelease(work))
  say('the packages of a release were checked')
  const runtimes = await provideToolchain('runtimes')
  if ('missing' in runtimes) throw new Error(`Not found: ${runtimes.missing}.`)
  faults.push(...(await tryInProject({ archive, work, runtimes: runtimes.directory, say })))
  for (const fault of faults) process.stderr.write(`${fault}\n`)
  say(faults.length === 0 ? 'The package works.' : `FAILED: ${faults.length} faults.`)
  if (faults.length > 0) process.exitCode = 1
} finally {
  rmSync(work, { recursive: true, force: true })
}
