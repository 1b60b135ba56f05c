/** The steps from the sources to the archive of the npm package. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { bundleModules } from './bundle-modules.ts'
import { makeDeclarations } from './declarations.ts'
import { makeManifest } from './manifest.ts'
import { licensesOf } from './licenses.ts'
import { makeReadme } from './readme.ts'

const ROOT = join(import.meta.dirname, '../..')
const DIST = join(ROOT, 'dist')
const PACKAGE = join(DIST, 'npm')

export type Packed = { readonly archive: string; readonly bytes: number }

/** Returns the path of the archive. Throws an error that says which step failed. */
export async function makePackage(): Promise<Packed> {
  rmSync(PACKAGE, { recursive: true, force: true })
  mkdirSync(PACKAGE, { recursive: true })
  makeDeclarations(join(PACKAGE, 'types'))
  const bundled = await bundleModules(PACKAGE)
  writeFileSync(join(PACKAGE, 'LICENSES.txt'), licensesOf(bundled))
  for (const file of ['LICENSE', 'CHANGELOG.md']) copyFileSync(join(ROOT, file), join(PACKAGE, file))
  writeFileSync(join(PACKAGE, 'README.md'), makeReadme())
  writeFileSync(join(PACKAGE, 'package.json'), `${JSON.stringify(makeManifest(), null, 2)}\n`)
  return pack()
}

function pack(): Packed {
  const archive = join(DIST, `${manifest.name}-${manifest.version}.tgz`)
  const npm = spawnSync('npm', ['pack', '--silent', '--pack-destination', DIST], { cwd: PACKAGE, encoding: 'utf8' })
  if (npm.status !== 0) throw new Error(`npm pack failed: ${npm.error?.message ?? npm.stderr.trim()}`)
  return { archive, bytes: statSync(archive).size }
}
