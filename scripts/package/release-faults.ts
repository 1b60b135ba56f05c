/** Finds what the tools of Debian and Ruby say against the Debian package and the Homebrew formula of a release. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEBIAN_ARCHITECTURES, makeDebianPackage } from '../release/debian-package.ts'
import type { ReleasedArchive } from '../release/homebrew-formula.ts'
import { homebrewFormula } from '../release/homebrew-formula.ts'

/** Text that would end a string of Ruby, and run as its code. */
const DESCRIPTION = 'Hosts "agents" #{exit}'

const ARCHIVES: readonly ReleasedArchive[] = (['darwin', 'linux'] as const).flatMap((platform) =>
  ['x64', 'arm64'].map((arch) => ({
    file: `agent-server-1.2.3-${platform}-${arch}.tar.gz`,
    platform,
    arch,
    sha256: 'a'.repeat(64),
  })),
)

/** A `Formula` that has what the formula calls, and prints what Homebrew would read. */
const STAND_IN = `
class Formula
  # Ruby has a function of this name.
  def self.test = puts("test ")
  def self.method_missing(name, *values)
    puts "#{name} #{values.join}"
    yield if block_given? && name.to_s.start_with?("on_")
  end
end
`

/** Returns a sentence for each. A script stands for the executable. `work`: a directory to write into. */
export function faultsOfRelease(work: string): string[] {
  return [...faultsOfDebianPackage(work), ...faultsOfFormula()]
}

function faultsOfDebianPackage(work: string): string[] {
  const directory = join(work, 'debian')
  mkdirSync(directory)
  const [executable, nodeLicense] = [join(directory, 'program'), join(directory, 'LICENSE-node')]
  writeFileSync(executable, '#!/bin/sh\necho runs\n', { mode: 0o700 })
  writeFileSync(nodeLicense, 'Node.js is licensed for use as follows:\n\nAs the authors say.\n')
  const architecture = DEBIAN_ARCHITECTURES[process.arch]
  if (architecture === undefined) return [`There is no Debian package for ${process.arch}.`]
  const about = {
    version: '0.1.0',
    architecture,
    description: 'A server that hosts agents',
    time: new Date('2026-01-02T03:04:05Z'),
  }
  const files = { executable, nodeLicense, work: directory, output: directory }
  const file = makeDebianPackage({ ...about, ...files, compression: 1 })
  // It exits with 2 on errors, and only prints warnings.
  const options = ['--allow-root', '--profile', 'debian', join(directory, file)]
  const { stdout, error } = spawnSync('lintian', options, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  if (error) return [`lintian did not run: ${error.message}`]
  return stdout.split('\n').filter((line) => line !== '')
}

function faultsOfFormula(): string[] {
  const form = { version: '1.2.3', description: DESCRIPTION, url: 'https://example.com/', archives: ARCHIVES }
  const input = STAND_IN + homebrewFormula(form)
  const { stdout, stderr, error } = spawnSync('ruby', ['-w', '-'], { input, encoding: 'utf8' })
  if (error) return [`ruby did not run: ${error.message}`]
  const isRead =
    stdout.includes(`desc ${DESCRIPTION}\n`) &&
    stdout.match(/^sha256 /gm)?.length === ARCHIVES.length &&
    /^service $/m.test(stdout)
  return [
    ...(stderr === '' ? [] : [`Ruby says of the formula: ${stderr}`]),
    ...(isRead ? [] : [`Ruby does not read in the formula what was written: ${stdout}`]),
  ]
}
