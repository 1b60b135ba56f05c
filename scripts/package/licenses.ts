/** The licenses of the packages that are bundled, which permit that if their text goes with it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

type Manifest = { readonly name: string; readonly version: string; readonly license?: string }

const LICENSE_FILE = /^(?:licen[cs]e|copying)(?:[.-].*)?$/i

/** Throws for a package without a license. */
export function licensesOf(folders: readonly string[]): string {
  return folders
    .map(licenseOf)
    .toSorted()
    .join(`\n${'-'.repeat(80)}\n\n`)
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const file = readdirSync(folder).find((each) => LICENSE_FILE.test(each))
  if (file === undefined && license === undefined) throw new Error(`${name} has no license.`)
  const text = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
  return `${name} ${version}: ${license ?? file}\n${text}`
}
